"""Crowds of connections that prove nothing, at the coordinator's port."""
import contextlib
import os
import resource
import socket
import ssl
import threading
import unittest

from disturbed import DisturbedTest
from harness import DEADLINE_S, lockstep

SILENT = 1_100  # more than the coordinator holds unproven (limits::kUnprovenPeers)


def client_hello():
    """The first message of a TLS client, which starts the server's arithmetic."""
    said = ssl.MemoryBIO()
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).wrap_bio(ssl.MemoryBIO(), said,
                                                              server_hostname="coordinator")
    with contextlib.suppress(ssl.SSLWantReadError):
        client.do_handshake()
    return said.read()


class Flood:
    """Threads that open connections as fast as they can. Each says `word` and no more."""

    def __init__(self, address, word=b"", crowd=SILENT, threads=2):
        self.address, self.word, self.crowd = address, word, crowd // threads
        self.over = threading.Event()
        self.full = threading.Barrier(threads + 1)
        self.opened = 0
        self.threads = [threading.Thread(target=self._pour) for _ in range(threads)]
        for thread in self.threads:
            thread.start()
        self.full.wait(60)

    def _pour(self):
        open_ones = []
        is_full = False
        while not self.over.is_set():
            with contextlib.suppress(OSError):
                one = socket.create_connection(self.address, timeout=DEADLINE_S)
                open_ones.append(one)
                one.sendall(self.word)
                self.opened += 1
            if len(open_ones) >= self.crowd:
                open_ones.pop(0).close()
                if not is_full:
                    self.full.wait()
                    is_full = True
        for one in open_ones:
            one.close()

    def end(self):
        self.over.set()
        for thread in self.threads:
            thread.join()


class Floods(DisturbedTest):
    train = {"global_batch": 64, "slots": 4, "max_steps": 600}
    slot_ms = 20

    def setUp(self):
        super().setUp()
        before = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(before[1], 4 * SILENT), before[1]))
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, before)

    def control_address(self, run):
        host, port = run.coordinator()["control"].rsplit(":", 1)
        return host, int(port)

    def assert_lets_its_own_in(self, word=b"", **sections):
        run = self.start_run(2, **sections)
        flood = Flood(self.control_address(run), word)
        self.addCleanup(flood.end)
        # A command, a worker that is new, and one that comes back after a death.
        done = lockstep("scale", run.run_dir, 3, timeout=DEADLINE_S)
        self.assertEqual(done.returncode, 0, done.stderr)
        run.wait_for_workers(3)
        victim = run.worker(0)
        os.kill(victim, 9)
        run.wait_for(lambda: len(run.workers()) == 3 and victim not in run.workers(),
                     "another worker had its place")
        self.assertGreater(flood.opened, SILENT)
        self.assertEqual(run.status()["state"], "training")
        flood.end()
        self.assert_as_if_nothing_had_happened(run)

    def test_silent_connections_keep_no_command_and_no_worker_out(self):
        self.assert_lets_its_own_in()

    def test_half_tls_handshakes_keep_no_command_and_no_worker_out(self):
        certificates = self.scratch / "tls"
        self.succeed("certs", certificates, "--hosts", "127.0.0.1")
        self.assert_lets_its_own_in(client_hello(), comm={"tls": str(certificates)})


if __name__ == "__main__":
    unittest.main()
