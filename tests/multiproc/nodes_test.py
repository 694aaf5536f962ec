"""Several nodes, all on loopback."""
import unittest

from fails_with import events, told
from harness import DEADLINE_S
from nodes import NodesTest


class Nodes(NodesTest):
    train = {"global_batch": 64, "slots": 8, "max_steps": 600}
    slot_ms = 20

    def test_one_of_two_is_lost_the_other_goes_on_at_once_and_the_lost_one_joins_again(self):
        # The agents are so many that their silence alone would be held back for a lease.
        workers = 4
        run, (stays, lost) = self.start_nodes({"node-a": [], "node-b": []}, workers)
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
            self.assertEqual(node.agent.wait(DEADLINE_S), 0)
        self.assert_event(run, "member_died", names=lost.name, says="lost")
        for death in events(run, "member_died"):
            for waited_for in ("silent", "come back within"):
                self.assertNotIn(waited_for, told(death), "every death was proven")


if __name__ == "__main__":
    unittest.main()
