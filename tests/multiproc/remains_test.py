"""Everything of a run is killed at the same moment: what is left is the run directory, from which
it goes on as if nothing had happened.
"""
import signal
import socket
import unittest

from disturbed import DisturbedTest
from harness import DEADLINE_S, kill_at_once, processes_of


class Remains(DisturbedTest):
    def assert_nobody_listens(self, address):
        host, port = address.rsplit(":", 1)
        with self.assertRaises(ConnectionRefusedError):
            socket.create_connection((host, int(port)), timeout=DEADLINE_S).close()

    def test_all_killed_at_once_leave_only_the_run_directory_and_that_is_enough(self):
        run = self.start_run(3)
        run.wait_for_step(150)  # there is a checkpoint
        for steps in (0, 200, 200):  # in the first generation, and twice in a resumed run
            run.wait_for_more_steps(steps)
            everything = processes_of(run.run_dir)
            self.assertIn(run.process.pid, everything)
            self.assertEqual(len(everything), 6, "run, coordinator, agent and three workers")
            addresses = run.coordinator()
            kill_at_once(everything)
            self.assertEqual(run.wait(), -signal.SIGKILL)
            self.assert_nothing_left(run)
            for name in ("control", "http"):
                self.assert_nobody_listens(addresses[name])
            self.assertEqual(sorted(path.name for path in self.scratch.iterdir() if path.is_dir()),
                             ["run", "tmp"])
            self.assertEqual(list(self.temporary.iterdir()), [])
            run = self.start(self.scratch / "job.yaml", "--resume", "--workers", 3)
            run.wait_for(lambda: run.status()["term"] > addresses["term"] and
                         run.status()["state"] == "training", "it trained again")
            self.assertGreaterEqual(len(run.history()), 100, "it went on from a checkpoint")
        self.assert_as_if_nothing_had_happened(run)


if __name__ == "__main__":
    unittest.main()
