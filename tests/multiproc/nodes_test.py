"""Several nodes, each with an agent of its own, as a launcher starts them; here all on loopback."""
import signal
import subprocess
import unittest

from disturbed import DisturbedTest
from harness import BIN, kill_at_once


class Node:
    """An agent and its workers."""

    def __init__(self, run, name, workers):
        self.run, self.name, self.workers = run, name, workers
        self.start()

    def start(self):
        with open(self.run.output, "ab") as out:
            self.agent = subprocess.Popen(
                [BIN / "lockstep", "agent", "--run-dir", self.run.run_dir, "--node", self.name,
                 "--workers", str(self.workers)], stdin=subprocess.DEVNULL, stdout=out, stderr=out)

    def pids(self):
        """Of its workers, as the coordinator sees them."""
        return [m["pid"] for m in self.run.status()["members"] if m["node"] == self.name]

    def lose(self):
        """Everything on it dies at once; the agent has no time to tell of it."""
        kill_at_once([self.agent.pid] + self.pids())
        self.agent.wait()


class Nodes(DisturbedTest):
    train = {"global_batch": 64, "slots": 8, "max_steps": 2000}

    def start_nodes(self, names, workers):
        """`lockstep run` prepares the run and is stopped; coordinator and agents go on alone."""
        run = self.start(self.job_of(), "--workers", len(names) * workers)
        run.wait_for_step(10)
        run.process.send_signal(signal.SIGINT)
        self.assertEqual(run.wait(), 75, run.text()[-3000:])
        (run.run_dir / "coordinator.json").unlink()  # as `lockstep run` does
        with open(run.output, "ab") as out:
            run.process = subprocess.Popen(
                [BIN / "lockstep", "coordinator", "--run-dir", run.run_dir, "--resume"],
                stdin=subprocess.DEVNULL, stdout=out, stderr=out)
        nodes = [Node(run, name, workers) for name in names]
        self.addCleanup(self.reap, nodes)
        run.wait_for_workers(len(names) * workers)
        run.wait_for_more_steps(100)
        for node in nodes:
            self.assertEqual(len(node.pids()), workers)
        return run, nodes

    def reap(self, nodes):
        for node in nodes:
            if node.agent.poll() is None:
                node.agent.kill()
            node.agent.wait()

    def test_one_of_two_is_lost_the_other_goes_on_at_once_and_the_lost_one_joins_again(self):
        # So many that their silence alone would be held back for a lease.
        workers = 4
        run, (stays, lost) = self.start_nodes(["node-a", "node-b"], workers)
        survivors = stays.pids()
        lost.lose()
        run.wait_for(lambda: run.workers() == survivors and run.status()["state"] == "training",
                     "the other node went on")
        run.wait_for_more_steps(100)
        lost.start()
        run.wait_for_workers(2 * workers)
        self.assertEqual(stays.pids(), survivors, "who had stayed was left alone")
        self.assert_as_if_nothing_had_happened(run)
        for node in (stays, lost):
            self.assertEqual(node.agent.wait(30), 0)
        log = (run.run_dir / "logs" / "coordinator.log.jsonl").read_text()
        self.assertNotIn("evictions_held", log)


if __name__ == "__main__":
    unittest.main()
