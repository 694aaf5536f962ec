"""Several hosts on a network (comm.network), with a shared run directory."""
import json
import pathlib
import shutil
import subprocess
import sys
import unittest

from disturbed import SHORT_LEASE
from harness import DEADLINE_S, lockstep
import hosts
from hosts import NETWORK, Hosts, why_not
from nodes import Node, NodesTest

WORKERS = 2  # of each host
PORT = 4100  # on the loopback of a host that has nothing else


def listening(prefix):
    """The addresses on which processes of a host listen."""
    lines = subprocess.run([*prefix, "ss", "-Htln"], check=True, capture_output=True, text=True)
    return [line.split()[3] for line in lines.stdout.splitlines()]


@unittest.skipIf(reason := why_not(), reason)
class Network(NodesTest):
    slot_ms = 10

    def setUp(self):
        super().setUp()
        self.hosts = Hosts(3)
        self.addCleanup(self.hosts.close)

    def start_hosts(self, **sections):
        self.job_of()  # the undisturbed run knows nothing of hosts
        places = {f"host-{i}": self.hosts.on(i) for i in range(2)}
        return self.start_nodes(places, WORKERS, comm={"network": NETWORK}, **sections)

    def test_hosts_train_together_and_give_the_bits_of_one_worker(self):
        run = self.start(self.job_of(), "--workers", WORKERS, f"comm.network={NETWORK}",
                         prefix=self.hosts.on(0))
        run.wait_for_workers(WORKERS)
        second = Node(run, "second", WORKERS, self.hosts.on(1))
        self.addCleanup(self.reap, [second])
        run.wait_for(lambda: run.status()["standbys"] == WORKERS, "its workers stood by")
        lockstep("scale", run.run_dir, 2 * WORKERS, prefix=self.hosts.on(0)).check_returncode()
        run.wait_for_workers(2 * WORKERS)
        self.assertEqual(len(second.pids()), WORKERS)
        self.assertTrue(run.coordinator()["control"].startswith(self.hosts.address(0) + ":"))
        for i in range(2):
            heard = {address.rsplit(":", 1)[0] for address in listening(self.hosts.on(i))}
            self.assertEqual(heard, {"127.0.0.1", self.hosts.address(i)},
                             "nothing listens on every address")
        self.assert_as_if_nothing_had_happened(run)
        self.assertEqual(second.agent.wait(DEADLINE_S), 0)
        network = self.assert_event(run, "network", names=NETWORK, says="encrypted")
        self.assertEqual(network["level"], "warn")

    def test_a_host_whose_cable_was_pulled_joins_again(self):
        run, (stays, cut) = self.start_hosts(cluster=SHORT_LEASE)
        survivors = stays.pids()
        self.hosts.cut(1)
        run.wait_for(lambda: run.workers() == survivors and run.status()["state"] == "training",
                     "the host with the coordinator went on")
        run.wait_for_more_steps(100)
        self.hosts.mend(1)
        run.wait_for_workers(2 * WORKERS)
        self.assertEqual(stays.pids(), survivors, "who had stayed was left alone")
        self.assert_as_if_nothing_had_happened(run)
        self.assertEqual(cut.agent.wait(DEADLINE_S), 0)

    def test_a_host_that_is_cut_off_for_good_is_not_waited_for(self):
        run, (stays, lost) = self.start_hosts(cluster=SHORT_LEASE)
        survivors, others = stays.pids(), lost.pids()
        self.hosts.cut(1)
        run.wait_for(lambda: run.workers() == survivors and run.status()["state"] == "training",
                     "the host with the coordinator went on")
        self.assertEqual(run.wait(), 0, run.text()[-3000:])
        self.assertEqual(stays.agent.wait(DEADLINE_S), 0)
        self.assert_same_result(run, self.undisturbed)
        self.assertEqual(lost.agent.wait(DEADLINE_S), 0, "it reads in the run directory how the run ended")
        self.assertEqual([pid for pid in others if pathlib.Path(f"/proc/{pid}").exists()], [])

    def test_a_stranger_on_the_network_is_refused_and_disturbs_nobody(self):
        run, _ = self.start_hosts()
        host, port = run.coordinator()["control"].rsplit(":", 1)
        data = [address for address in listening(self.hosts.on(1))
                if address.startswith(self.hosts.address(1))]
        self.assertEqual(len(data), WORKERS)
        generation = run.status()["generation"]
        control = f"{host}:{port}"
        for words in [[control], [control, "frame"], *([address] for address in data)]:
            subprocess.run(self.stranger(*words), check=True, timeout=DEADLINE_S)
        self.a_friends_words_do_not_help(run, control)
        for reason in ("stream", "token", "4294967295"):
            self.assert_event(run, "stranger_refused", names=self.hosts.address(2), says=reason)
        run.wait_for_more_steps(50)
        self.assertEqual(run.status()["generation"], generation, "nobody was disturbed")
        self.assert_as_if_nothing_had_happened(run)

    def stranger(self, *words):
        program = pathlib.Path(hosts.__file__).with_name("stranger.py")
        return [*self.hosts.on(2), sys.executable, program, *words]

    def a_friends_words_do_not_help(self, run, control):
        """A stranger relays the words of a client that has the token, and then replays them."""
        between = subprocess.Popen(self.stranger(control, "replay", str(PORT)), text=True,
                                   stdout=subprocess.PIPE)
        self.addCleanup(between.kill)
        self.assertEqual(between.stdout.readline(), "listening\n")
        mirror = self.scratch / "mirror"  # the run, as seen through the one in between
        mirror.mkdir()
        for name in ("token", "job.pb"):
            shutil.copy(run.run_dir / name, mirror)
        (mirror / "coordinator.json").write_text(json.dumps(
            {**run.coordinator(), "control": f"127.0.0.1:{PORT}"}))
        friend = lockstep("scale", mirror, 2 * WORKERS, prefix=self.hosts.on(2))
        self.assert_fails(friend, 3, names=[f"127.0.0.1:{PORT}", control], says="relays")
        between.communicate(timeout=DEADLINE_S)
        self.assertEqual(between.returncode, 0)


if __name__ == "__main__":
    unittest.main()
