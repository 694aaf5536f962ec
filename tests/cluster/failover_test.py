"""If the coordinator's machine is lost or stands still for too long, the agent of another machine
claims the run, and training goes on there."""
import json
import os
import signal
import subprocess
import unittest

from disturbed import SECTIONS
from harness import BIN, DEADLINE_S, kill_at_once, processes_of
from hosts import NETWORK, Hosts, why_not
from nodes import Node, NodesTest

WORKERS = 2  # of each host
# A process that looks for the coordinator tries the lost one's address for less time than this.
CLUSTER = {**SECTIONS["cluster"], "lease_s": 10}


def claims(run):
    """{term: claim}"""
    return {int(path.name): json.loads(path.read_text())
            for path in (run.run_dir / "terms").iterdir()}


@unittest.skipIf(reason := why_not(), reason)
class Failover(NodesTest):
    # Long enough for a machine that comes back to join again.
    train = {"global_batch": 64, "slots": 6, "max_steps": 1500}
    slot_ms = 10

    def setUp(self):
        super().setUp()
        self.hosts = Hosts(3)
        self.addCleanup(self.hosts.close)

    def watch_from(self, run, host, process):
        """Makes `run` query that host from now on, and end with that process."""
        run.prefix = self.hosts.on(host)
        run.process = process

    def wait_for_another_coordinator(self, run, address):
        run.wait_for(lambda: run.coordinator()["control"].startswith(address + ":")
                     or run.coordinator()["control"].startswith(self.hosts.address(2) + ":"),
                     "another host took over")
        run.prefix = self.hosts.on(
            1 if run.coordinator()["control"].startswith(address + ":") else 2)

    def test_the_machine_of_the_coordinator_is_lost_and_one_of_the_others_takes_over(self):
        self.job_of()
        places = {f"host-{i}": self.hosts.on(i) for i in range(3)}
        run, nodes = self.start_nodes(places, WORKERS, comm={"network": NETWORK}, cluster=CLUSTER)
        before, lost = len(claims(run)), nodes[0]
        survivors = nodes[1].pids() + nodes[2].pids()
        coordinator = run.process
        self.hosts.cut(0)  # no word of it reaches the others
        kill_at_once([coordinator.pid, lost.agent.pid]
                     + [pid for pid in processes_of(run.run_dir) if pid not in survivors
                        and pid not in (nodes[1].agent.pid, nodes[2].agent.pid)])
        coordinator.wait()
        lost.agent.wait()
        self.watch_from(run, 1, nodes[1].agent)
        self.wait_for_another_coordinator(run, self.hosts.address(1))
        run.wait_for(lambda: sorted(run.workers()) == sorted(survivors),
                     "the workers of the other hosts went on in place")
        newer = {term: claim for term, claim in claims(run).items() if term > before}
        self.assertEqual(len(newer), 1, f"one of two agents has claimed the run: {newer}")
        codes = [node.agent.wait(DEADLINE_S) for node in nodes[1:]]
        self.assertEqual(codes, [0, 0], run.text()[-3000:])
        self.assert_same_result(run, self.undisturbed)
        self.assert_no_process_holds_anything(run)

    def test_a_machine_that_stood_still_is_one_of_the_others_when_it_comes_back(self):
        run = self.start(self.job_of(cluster=CLUSTER), "--workers", WORKERS, f"comm.network={NETWORK}",
                         prefix=self.hosts.on(0))
        run.wait_for_workers(WORKERS)
        first = processes_of(run.run_dir)
        second = Node(run, "second", 2 * WORKERS, self.hosts.on(1))
        self.addCleanup(self.reap, [second])
        run.wait_for(lambda: run.status()["standbys"] == 2 * WORKERS, "its workers stood by")
        subprocess.run([*self.hosts.on(0), BIN / "lockstep", "scale", run.run_dir,
                        str(3 * WORKERS)], check=True, capture_output=True, timeout=DEADLINE_S)
        run.wait_for_workers(3 * WORKERS)
        stays = second.pids()
        self.hosts.cut(0)  # the kernel of a machine that stands still does not answer
        for pid in first:
            os.kill(pid, signal.SIGSTOP)
        try:
            run.prefix = self.hosts.on(1)
            self.wait_for_another_coordinator(run, self.hosts.address(1))
            run.wait_for(lambda: sorted(run.workers()) == sorted(stays),
                         "the second host went on alone")
        finally:
            self.hosts.mend(0)
            for pid in reversed(first):
                os.kill(pid, signal.SIGCONT)
        run.wait_for_workers(3 * WORKERS)
        self.assertEqual(run.wait(), 0, run.text()[-3000:])
        self.assertIn("another machine", run.text())
        self.assertEqual(second.agent.wait(DEADLINE_S), 0)
        self.assert_same_result(run, self.undisturbed)
        self.assert_no_process_holds_anything(run)


if __name__ == "__main__":
    unittest.main()
