"""train.global_batch: auto. One number, found before the first step and never again."""
import os
import signal
import unittest

from fails_with import events
from harness import LockstepTest, synthetic_dataset

# 600 samples in 4 slots: 20 steps an epoch leave 7 samples a slot, so that the data set and not this
# machine's memory decides.
BATCH = 16
MODEL = {"name": "cnn", "dropout": 0.25}


class AutoBatch(LockstepTest):
    def setUp(self):
        super().setUp()
        self.auto = self.job(self.small_data(), name="auto.yaml", model=MODEL,
                             train={"global_batch": "auto", "slots": 4, "max_steps": 20},
                             schedule={"name": "cosine", "warmup_steps": 3},
                             checkpoint={"every_steps": 3, "keep": 2})

    def with_number(self, *args):
        return self.finish(self.auto, f"train.global_batch={BATCH}", *args, name="number")

    def coordinator_of(self, run):
        return run.wait_for(lambda: run.coordinator()["pid"], "the coordinator served")

    def test_gives_the_weights_of_a_run_with_the_number_written_out(self):
        run = self.finish(self.auto, "--workers", 2)
        self.assertEqual(len(run.history()), 20)
        self.assert_same_result(run, self.with_number("--workers", 2))
        self.assert_nothing_left(run)

    def test_the_number_is_shown_and_kept(self):
        run = self.finish(self.auto, "--workers", 2)
        self.assertIn(f"global_batch: {BATCH}", (run.run_dir / "job.yaml").read_text())
        self.assertEqual(run.summary()["global_batch"], BATCH)
        self.assertEqual(self.audit(run)["global_batch"], BATCH)
        self.assertRegex(run.text(), rf"global batch {BATCH} \(auto\): 4 slots of 4, 38 steps")

    def test_an_epoch_that_cannot_have_twenty_steps_says_why(self):
        data = synthetic_dataset(self.scratch / "few", train=60, evaluation=20)
        run = self.finish(self.job(data, train={"global_batch": "auto", "slots": 4,
                                                "max_steps": 3}), "--workers", 2)
        self.assertEqual(run.summary()["global_batch"], 4)
        self.assertRegex(run.text(), r"global batch 4 \(auto\): .*15 steps.*train\.slots")

    def test_a_resume_with_another_world_keeps_the_number_and_measures_nothing(self):
        cut = self.finish(self.auto, "train.max_steps=7", "--workers", 3, name="cut")
        self.assertEqual(len(events(cut, "largest_slot", "worker-0")), 1)
        for job in (self.auto, cut.run_dir / "job.yaml"):  # the words, and the number
            rest = self.finish(job, "--resume", f"train.max_steps={13 if job == self.auto else 20}",
                               "--workers", 1, name="cut")
        self.assertEqual(len(events(rest, "largest_slot", "worker-0")), 1)
        whole = self.with_number("--workers", 2)
        self.assertEqual(len(rest.history()), 20)
        self.assertEqual([(r["step"], r["samples"]) for r in rest.history()],
                         [(r["step"], r["samples"]) for r in whole.history()])

    def test_a_coordinator_killed_before_anybody_registered_asks_again(self):
        run = self.start(self.auto, "--workers", 2)
        os.kill(self.coordinator_of(run), signal.SIGKILL)
        self.assertEqual(run.wait(), 0, run.text()[-3000:])
        self.assert_same_result(run, self.with_number("--workers", 2))

    def test_a_coordinator_killed_as_soon_as_the_number_is_journalled_goes_on_with_it(self):
        run = self.start(self.auto, "--workers", 2, slot_ms=20)
        pid = self.coordinator_of(run)
        run.wait_for(lambda: events(run, "global_batch"), "the number was found")
        os.kill(pid, signal.SIGKILL)
        self.assertEqual(run.wait(), 0, run.text()[-3000:])
        self.assertEqual(len(events(run, "global_batch")), 1)
        self.assert_same_result(run, self.with_number("--workers", 2))

    def test_a_worker_that_comes_later_measures_nothing(self):
        run = self.start(self.auto, "--workers", 2, "train.max_steps=1000000", "checkpoint.every_steps=50")
        run.wait_for_workers(2)
        run.wait_for_more_steps(5)
        self.assertEqual(run.status()["global_batch"], BATCH)
        os.kill(run.worker(1), signal.SIGKILL)
        run.wait_for(lambda: events(run, "state_received", "worker-1"), "it was replaced")
        run.process.send_signal(signal.SIGINT)
        self.assertEqual(run.wait(), 75, run.text()[-3000:])
        self.assertEqual(len(events(run, "largest_slot", "worker-1")), 1)

    def test_a_word_that_is_none_is_refused_with_the_one_that_is(self):
        self.assert_fails(self.start(self.auto, "train.global_batch=large"), 64,
                          names=["train.global_batch", "large"], advises="auto")


if __name__ == "__main__":
    unittest.main()
