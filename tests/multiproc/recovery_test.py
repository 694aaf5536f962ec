"""The third promise: nothing stops. The run goes on whatever happens to workers, agent and
coordinator, ends with code 0, and has the weights, losses and samples of an undisturbed run with
one worker.
"""
import os
import signal
import time
import unittest

from disturbed import SECTIONS, SHORT_LEASE, DisturbedTest
from fails_with import events, is_named
from harness import LockstepTest, kill_at_once, lockstep, processes_of


class Recovery(DisturbedTest):
    def test_a_killed_worker_of_two_is_replaced(self):
        run = self.start_run(2)
        victim = run.worker(1)
        os.kill(victim, signal.SIGKILL)
        run.wait_for(lambda: len(run.workers()) == 2 and victim not in run.workers(),
                     "another worker had its place")
        self.assert_as_if_nothing_had_happened(run)
        # On a busy machine the coordinator hears of it from a peer before the agent tells the signal.
        self.assert_event(run, "member_died", names=f"pid {victim}")
        self.assert_event(run, "worker_died", names=[f"pid {victim}", "signal 9"],
                          log="agent")

    def test_the_writer_is_killed(self):
        run = self.start_run(3)
        os.kill(run.worker(0), signal.SIGKILL)
        self.assert_as_if_nothing_had_happened(run)

    def test_a_worker_that_was_stopped_beyond_the_lease_comes_back_and_harms_nobody(self):
        run = self.start_run(2, cluster=SHORT_LEASE)
        victim = run.worker(1)
        os.kill(victim, signal.SIGSTOP)
        run.wait_for(lambda: run.status()["generation"] > 1, "the run went on without it")
        run.wait_for_more_steps(20)
        os.kill(victim, signal.SIGCONT)
        self.assert_as_if_nothing_had_happened(run)

    def test_all_workers_are_killed_at_once(self):
        run = self.start_run(3)
        run.wait_for_step(150)  # there is a checkpoint
        kill_at_once(run.workers())  # one by one in one step, they look like victims of a sample
        self.assert_as_if_nothing_had_happened(run)

    def test_a_run_that_ends_for_want_of_workers_says_so(self):
        cluster = {**SECTIONS["cluster"], "min_workers": 2, "min_wait_s": 1, "max_crashes": 0}
        run = self.start(self.job_of(cluster=cluster), "--workers", 2)
        run.wait_for_step(150)  # there is a checkpoint
        os.kill(run.worker(1), signal.SIGKILL)
        self.assertEqual(run.wait(), 75, run.text()[-3000:])
        [said] = [line for line in run.text().splitlines() if "continue with:" in line]
        for word in ("1 worker", "cluster.min_wait_s", "cluster.min_workers is 2", "checkpoint"):
            self.assertIn(word, said)

    def test_the_coordinator_is_killed_twice(self):
        run = self.start_run(2)
        workers = run.workers()
        for _ in range(2):
            killed = run.coordinator()["pid"]
            os.kill(killed, signal.SIGKILL)
            run.wait_for(lambda: run.coordinator()["pid"] != killed, "another coordinator served")
            self.wait_for_names(run, f"pid {killed}")
            run.wait_for_more_steps(100)
        self.assertEqual(run.workers(), workers)
        self.assertEqual(run.status()["generation"], 1, "a dead coordinator costs no step")
        self.assert_as_if_nothing_had_happened(run)

    def test_a_worker_dies_while_the_coordinator_is_away(self):
        run = self.start_run(2)
        victim = run.worker(1)
        os.kill(run.coordinator()["pid"], signal.SIGKILL)
        os.kill(victim, signal.SIGKILL)
        self.assert_as_if_nothing_had_happened(run)

    def test_a_killed_agent_is_started_again_and_its_workers_go_on_from_the_checkpoint(self):
        run = self.start_run(2)
        run.wait_for_step(150)
        agent = run.agent()
        os.kill(agent, signal.SIGKILL)
        self.wait_for_names(run, f"pid {agent}")
        self.assert_as_if_nothing_had_happened(run)

    def wait_for_names(self, run, subject):
        run.wait_for(lambda: is_named(subject, run.text()), f"the run told of {subject}")

    def scale(self, run, workers):
        self.succeed("scale", run.run_dir, workers)
        run.wait_for_workers(workers)
        run.wait_for_more_steps(20)

    def test_a_run_is_scaled_up_and_down_while_it_trains(self):
        self.slot_ms = 20  # new workers have to start meanwhile
        run = self.start_run(2)
        self.scale(run, 4)
        self.scale(run, 1)
        run.wait_for(lambda: len(processes_of(run.run_dir, lambda w: w[0].endswith(b"-worker"))) == 1,
                     "the others had ended")
        self.assert_as_if_nothing_had_happened(run)

    def test_a_drained_worker_leaves_and_nothing_is_lost(self):
        run = self.start_run(3)
        member = run.status()["members"][2]
        self.succeed("drain", run.run_dir, "--member", member["id"])
        run.wait_for(lambda: member["pid"] not in run.workers(), "it had left")
        self.assert_as_if_nothing_had_happened(run)

    def test_a_preempted_worker_leaves_in_order_and_another_one_joins(self):
        # The worker that stays is stopped until the other one's successor is there, or the run
        # might end too early.
        run = self.start_run(2)
        stays, victim = run.workers()
        os.kill(victim, signal.SIGTERM)
        run.wait_for(lambda: victim not in run.workers(), "it had left")
        os.kill(stays, signal.SIGSTOP)
        run.wait_for(lambda: len(events(run, "registered", "worker-1")) == 2,
                     "its successor registered")
        os.kill(stays, signal.SIGCONT)
        run.wait_for(lambda: len(run.workers()) == 2, "another worker had its place")
        self.assert_as_if_nothing_had_happened(run)

    def test_a_stop_while_the_coordinator_is_dead_still_ends_with_a_checkpoint(self):
        run = self.start_run(2)
        os.kill(run.coordinator()["pid"], signal.SIGKILL)
        run.process.send_signal(signal.SIGTERM)
        self.assertEqual(run.wait(), 75, run.text()[-3000:])
        self.assert_nothing_left(run)
        rest = self.finish(self.scratch / "job.yaml", "--resume", "--workers", 2)
        self.assert_same_result(rest, self.undisturbed)


class Commands(LockstepTest):
    def test_what_cannot_be_done_is_said_with_what_can(self):
        run = self.start(self.job(self.small_data(), train={"global_batch": 64, "slots": 4,
                                                            "epochs": 5000}), "--workers", 1)
        run.wait_for_step(5)
        for words, subject in ((("scale", run.run_dir, 5), "4"),
                              (("drain", run.run_dir, "--member", 77), "77"),
                              (("drain", run.run_dir, "--node", "nowhere"), "nowhere")):
            with self.subTest(words):
                self.assert_fails(lockstep(*words), 64, names=subject)
        run.process.send_signal(signal.SIGINT)
        self.assertEqual(run.wait(), 75)
        self.assert_fails(lockstep("scale", run.run_dir, 2), 3, names=run.run_dir)
        self.assert_fails(lockstep("scale", self.scratch, 2), 66, names=self.scratch)


class EarlyStop(LockstepTest):
    def test_an_interrupt_right_after_the_start_ends_in_order_and_leaves_nothing(self):
        job = self.job(self.small_data(), train={"global_batch": 64, "slots": 4, "epochs": 5000})
        for delay_s in (0.03, 0.1, 0.2, 0.3, 0.5):
            with self.subTest(delay_s):
                run = self.start(job, "--workers", 2, name=f"run{delay_s}")
                run.wait_for(lambda: run.run_dir.exists(), "the run directory was there")
                time.sleep(delay_s)  # what is tested is the moment itself, not what happens by then
                run.process.send_signal(signal.SIGINT)
                self.assertEqual(run.wait(), 75, run.text())
                self.assert_no_crash(run.text())
                if run.run_dir.exists():
                    self.assertTrue(run.summary()["checkpoint"], run.text())
                while processes_of(run.run_dir):
                    time.sleep(0.02)


if __name__ == "__main__":
    unittest.main()
