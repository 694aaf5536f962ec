"""A run of several nodes, each with an agent of its own, as a launcher starts them."""
import signal
import subprocess

from disturbed import DisturbedTest
from harness import BIN, kill_at_once


class Node:
    """An agent and its workers. `prefix`: a command that starts the agent at its place."""

    def __init__(self, run, name, workers, prefix=()):
        self.run, self.name, self.workers, self.prefix = run, name, workers, prefix
        self.start()

    def start(self):
        with open(self.run.output, "ab") as out:
            self.agent = subprocess.Popen(
                [*self.prefix, BIN / "lockstep", "agent", "--run-dir", self.run.run_dir, "--node",
                 self.name, "--workers", str(self.workers)],
                stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=self.run.env)

    def pids(self):
        """Pids of its workers, as the coordinator sees them."""
        return [m["pid"] for m in self.run.status()["members"] if m["node"] == self.name]

    def lose(self):
        """Kills everything on the node at once. The agent has no time to tell of it."""
        kill_at_once([self.agent.pid] + self.pids())
        self.agent.wait()


class NodesTest(DisturbedTest):
    def start_nodes(self, places, workers, **sections):
        """`places`: the prefix of a node's commands by its name. The coordinator is on the first
        node. `lockstep run` prepares the run and is stopped. Coordinator and agents go on alone."""
        first = next(iter(places.values()))
        run = self.start(self.job_of(**sections), "--workers", len(places) * workers, prefix=first)
        run.wait_for_step(10)
        run.process.send_signal(signal.SIGINT)
        self.assertEqual(run.wait(), 75, run.text()[-3000:])
        (run.run_dir / "coordinator.json").unlink()  # as `lockstep run` does
        with open(run.output, "ab") as out:
            run.process = subprocess.Popen(
                [*first, BIN / "lockstep", "coordinator", "--run-dir", run.run_dir, "--resume"],
                stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=run.env)
        nodes = [Node(run, name, workers, prefix) for name, prefix in places.items()]
        self.addCleanup(self.reap, nodes)
        run.wait_for_workers(len(places) * workers)
        run.wait_for_more_steps(100)
        for node in nodes:
            self.assertEqual(len(node.pids()), workers)
        return run, nodes

    def reap(self, nodes):
        for node in nodes:
            if node.agent.poll() is None:
                node.agent.kill()
            node.agent.wait()
