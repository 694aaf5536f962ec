"""A listener on the network between two hosts can read nothing of the data with certificates."""
import json
import pathlib
import struct
import subprocess
import sys
import unittest

from harness import DEADLINE_S, FLIP_BIT, SLOW_SLOTS, kill_at_once, lockstep
import hosts
from hosts import NETWORK, Hosts, why_not
from nodes import NodesTest

WORKERS = 1  # of each host
# Operations of the data plane begin with these bytes (WireHeader in tcp_link.h). They are so many
# that encrypted bytes do not equal them by chance.
SECRET = (b"ltp2" + struct.pack("<I", 1)).hex()
TLS_RECORD = "170303"  # application data of TLS 1.3
MUCH = 20_000_000  # bytes: some dozen steps of gradients


@unittest.skipIf(reason := why_not(), reason)
class DataTls(NodesTest):
    def setUp(self):
        super().setUp()
        self.hosts = Hosts(2)
        self.addCleanup(self.hosts.close)
        addresses = ",".join(self.hosts.address(i) for i in range(2))
        lockstep("certs", self.scratch / "tls", "--hosts", addresses, timeout=DEADLINE_S).check_returncode()

    def start_hosts(self, **comm):
        self.job_of()
        places = {f"host-{i}": self.hosts.on(i) for i in range(2)}
        return self.start_nodes(places, WORKERS, comm={
            "network": NETWORK, "tls": str(self.scratch / "tls"), **comm})

    def heard_on_the_second_host(self):
        """The words found in so many bytes that they must be data. It does not count steps: a
        survivor that trains alone until its neighbour is back uses no network."""
        sniffer = subprocess.run(
            [*self.hosts.on(1), sys.executable, pathlib.Path(hosts.__file__).with_name("sniffer.py"),
             str(MUCH), SECRET, TLS_RECORD], check=True, capture_output=True, timeout=DEADLINE_S)
        return json.loads(sniffer.stdout)

    def test_nothing_of_the_data_is_heard_and_a_lost_worker_is_replaced(self):
        run, (_, second) = self.start_hosts()
        self.assertEqual(self.heard_on_the_second_host(), [TLS_RECORD])
        self.assertEqual(self.assert_event(run, "network", names="TLS 1.3")["level"], "info")
        victims = second.pids()
        kill_at_once(victims)
        run.wait_for(lambda: len(second.pids()) == WORKERS and second.pids() != victims,
                     "another worker joined")
        self.assertEqual(self.heard_on_the_second_host(), [TLS_RECORD])
        self.assert_as_if_nothing_had_happened(run)

    def test_in_a_network_that_is_trusted_data_goes_in_the_clear(self):
        run, _ = self.start_hosts(trusted_network=True)
        self.assertIn(SECRET, self.heard_on_the_second_host(),
                      "or the other test would hear nothing either")
        network = self.assert_event(run, "network", names=["TLS 1.3", "comm.trusted_network"])
        self.assertEqual(network["level"], "warn")
        self.assert_as_if_nothing_had_happened(run)


@unittest.skipIf(reason := why_not(), reason)
class DamagedNetwork(NodesTest):
    """TCP's own checksum has only 16 bits, and machines on the way recompute it."""

    slot_ms = 10

    def test_a_flipped_bit_of_a_gradient_breaks_the_connection_and_changes_nothing(self):
        hosts_of_run = Hosts(2)
        self.addCleanup(hosts_of_run.close)
        flipped = self.scratch / "flipped"
        # The bit lies after some hundred steps of gradients.
        damage = ["env", f"LD_PRELOAD={SLOW_SLOTS}:{FLIP_BIT}", "LOCKSTEP_TEST_FLIP_AT=40000001",
                  f"LOCKSTEP_TEST_FLIPPED={flipped}"]
        self.job_of()
        run, _ = self.start_nodes(
            {"host-0": hosts_of_run.on(0), "host-1": [*hosts_of_run.on(1), *damage]}, WORKERS,
            comm={"network": NETWORK, "trusted_network": True})
        run.wait_for(flipped.exists, "a bit was flipped")
        self.assert_as_if_nothing_had_happened(run)
        said = [line for log in (run.run_dir / "logs").glob("worker*")
                for line in log.read_text().splitlines() if "checksum" in line]
        self.assertTrue(said, "the worker says why the connection broke")


if __name__ == "__main__":
    unittest.main()
