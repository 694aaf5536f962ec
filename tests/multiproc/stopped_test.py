"""Stopped processes: nothing proves their death, and they do not die."""
import os
import signal
import unittest

from disturbed import SECTIONS, DisturbedTest
from fails_with import events


class Stopped(DisturbedTest):
    def stop_one(self, lease_s):
        run = self.start_run(2, cluster={**SECTIONS["cluster"], "lease_s": lease_s})
        victim = run.worker(1)
        os.kill(victim, signal.SIGSTOP)
        run.wait_for(lambda: run.status()["generation"] > 1, "the run went on without it")
        return run, victim

    def was_killed(self, run):
        return bool(events(run, "left_over_killed"))

    def test_one_that_stays_so_is_killed_and_another_one_has_its_place(self):
        run, victim = self.stop_one(lease_s=1)
        run.wait_for(lambda: len(run.workers()) == 2 and victim not in run.workers(),
                     "another worker had its place")
        with self.assertRaises(ProcessLookupError):
            os.kill(victim, 0)
        self.assertTrue(self.was_killed(run))
        self.assert_as_if_nothing_had_happened(run)

    def test_one_that_is_continued_in_time_is_spared_and_comes_back(self):
        run, victim = self.stop_one(lease_s=20)  # and so much time to continue it
        os.kill(victim, signal.SIGCONT)
        run.wait_for(lambda: len(run.workers()) == 2 and victim in run.workers(),
                     "the same process was back")
        self.assert_as_if_nothing_had_happened(run)
        self.assertFalse(self.was_killed(run))

    def test_one_that_stays_so_while_the_other_one_dies_holds_nobody_up(self):
        run = self.start_run(2, cluster={**SECTIONS["cluster"], "lease_s": 1})
        run.wait_for_step(150)  # there is a checkpoint
        stopped, killed = run.workers()
        os.kill(stopped, signal.SIGSTOP)
        os.kill(killed, signal.SIGKILL)
        run.wait_for(lambda: run.status()["term"] > 1 and run.status()["state"] == "training",
                     "the run went on from the checkpoint")
        self.assertNotIn(stopped, run.workers())
        self.assert_as_if_nothing_had_happened(run)

    def test_a_coordinator_that_stays_so_is_replaced_and_killed(self):
        self.slot_ms = 30  # it takes half a minute until a process is sure
        run = self.start_run(2)
        workers, stopped = run.workers(), run.coordinator()["pid"]
        os.kill(stopped, signal.SIGSTOP)  # its kernel goes on to answer
        run.wait_for(lambda: run.coordinator()["pid"] != stopped, "another one had taken over")
        self.assert_as_if_nothing_had_happened(run)
        self.assertIn("the coordinator, which hangs", run.text())
        with self.assertRaises(ProcessLookupError):
            os.kill(stopped, 0)
        self.assertEqual(events(run, "worker_died", "agent"), [],
                         f"{workers} trained on, or waited for the end")


if __name__ == "__main__":
    unittest.main()
