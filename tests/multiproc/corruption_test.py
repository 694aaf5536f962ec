"""A worker's memory or processor is wrong: one bit flips in its weights, in a gradient that it
computes, or in a slice of a sum that it adds up for all. The run names and evicts this worker, and
ends as if nothing had happened.
"""
import json
import platform
import unittest

from bit_flipper import BitFlipper, flip_one_bit
from fails_with import events, lacking, told
from harness import BIN, DEADLINE_S, LockstepTest, lockstep

# All its gradients are one bucket, and large enough to be added up in slices.
TRAINING = {"model": {"name": "mlp", "dropout": 0.25},
            "train": {"global_batch": 64, "slots": 4, "max_steps": 500, "check_every": 50},
            "checkpoint": {"every_steps": 50, "keep": 2},
            "cluster": {"lease_s": 120, "grace_s": 120}}

# Gradients that matter until the end. A network that has learnt everything has gradients so small
# that rounding may hide a flipped bit.
SLOW = {**TRAINING, "optimizer": {"name": "adamw", "lr": 1e-5}}

# With this learning rate the weights stay as they are in any checkpoint, so that the test finds
# them in a worker's memory. Losses still differ from step to step, and with the weights.
FROZEN = {**TRAINING, "optimizer": {"name": "adamw", "lr": 1e-30}}

SPREAD_STEPS = 25  # of 50 from check to check


@unittest.skipUnless(platform.machine() == "x86_64", "breakpoints are written for x86-64")
class Corruption(LockstepTest):
    def corruptions(self, run):
        """The log's corruption events, in all terms."""
        return [told(line) for line in events(run, "corruption")]

    def assert_told(self, told_of, names=(), says=()):
        self.assertEqual(lacking(told_of, names, says), [], told_of)

    def assert_nobody_is_put_out_but(self, run, *local_ranks):
        found = json.loads(lockstep("audit", run.run_dir, "--json").stdout)
        self.assertEqual([place["local_rank"] for place in found["expelled"]], list(local_ranks))

    def assert_as_if_nothing_had_happened(self, run, undisturbed):
        self.assertEqual(run.wait(), 0, run.text()[-3000:])
        self.assert_no_crash(run.text())
        self.assert_nothing_left(run)
        self.assert_same_result(run, undisturbed)

    def run_with_a_flip(self, workers, later_steps=0):
        """A run in which a bit of one worker's weights flips right before a check or some steps
        after one, the undisturbed one, and the pid of that worker."""
        flipper = BitFlipper(BIN / "lockstep-worker")
        job = self.job(self.small_data(), **FROZEN)
        undisturbed = self.finish(job, "--workers", 1, name="undisturbed")
        run = self.start(job, "--workers", workers, slot_ms=10)
        run.wait_for_step(100)
        victim = run.worker(1)
        flipper.at_check(victim, lambda: flip_one_bit(run, victim), DEADLINE_S, later_steps)
        return run, undisturbed, victim

    def wait_until_without(self, run, victim, others):
        run.wait_for(lambda: len(run.workers()) == others and victim not in run.workers()
                     and run.status()["state"] == "training", "the others went on without it")

    def test_one_flipped_bit_in_a_workers_weights_costs_that_worker_and_nothing_else(self):
        run, undisturbed, victim = self.run_with_a_flip(workers=3, later_steps=SPREAD_STEPS)
        self.wait_until_without(run, victim, 2)
        self.assert_as_if_nothing_had_happened(run, undisturbed)
        said = self.corruptions(run)
        self.assertEqual(len(said), 1, said)
        self.assert_told(said[0], names=f"pid {victim}", says="weights")

    def test_of_two_workers_the_one_that_was_wrong_is_named_when_the_step_is_computed_again(self):
        run, undisturbed, victim = self.run_with_a_flip(workers=2)
        self.wait_until_without(run, victim, 1)
        self.assert_as_if_nothing_had_happened(run, undisturbed)
        said = self.corruptions(run)
        self.assertEqual(len(said), 2, said)
        self.assert_told(said[0], names=f"pid {victim}", says="majority")
        self.assert_told(said[1], names="local rank 1", says="weights")
        self.assert_nobody_is_put_out_but(run, 1)

    def test_of_two_workers_whose_difference_had_spread_nobody_is_blamed_and_it_is_undone(self):
        run, undisturbed, _ = self.run_with_a_flip(workers=2, later_steps=SPREAD_STEPS)
        run.wait_for(lambda: self.corruptions(run), "a word about it")
        self.assert_as_if_nothing_had_happened(run, undisturbed)
        said = self.corruptions(run)
        self.assertEqual(len(said), 2, said)
        self.assert_told(said[0], says="majority")
        self.assert_nobody_is_put_out_but(run)
        self.assertEqual(run.summary()["terms"], 2)

    def run_in_which(self, flip, **train):
        """One of three workers computes wrong once, and is evicted: the run, the undisturbed one,
        and the line that names the victim. `flip(flipper, victim)`."""
        flipper = BitFlipper(BIN / "lockstep-worker")
        job = self.job(self.small_data(), **{**SLOW, "train": {**SLOW["train"], **train}})
        undisturbed = self.finish(job, "--workers", 1, name="undisturbed")
        run = self.start(job, "--workers", 3, slot_ms=10)
        run.wait_for_step(100)
        victim = run.worker(1)
        flip(flipper, victim)
        self.wait_until_without(run, victim, 2)
        self.assertEqual(run.wait(), 0, run.text()[-3000:])
        said = self.corruptions(run)
        self.assertEqual(len(said), 1, said)
        self.assert_told(said[0], names=[f"pid {victim}", "2 workers"])
        return run, undisturbed, said[0]

    def test_one_flipped_bit_in_a_workers_gradient_is_named_and_undone(self):
        run, undisturbed, said = self.run_in_which(
            lambda flipper, victim: flipper.flip_gradient(victim, DEADLINE_S))
        self.assert_told(said, says="gradient")
        self.assert_as_if_nothing_had_happened(run, undisturbed)
        self.assertEqual(run.summary()["terms"], 2, "it went back")

    def test_one_flipped_bit_in_one_slice_of_a_sum_is_named_and_undone(self):
        run, undisturbed, said = self.run_in_which(
            lambda flipper, victim: flipper.flip_sum(victim, 1, DEADLINE_S))
        self.assert_told(said, names="slice of rank 1", says="sum")
        self.assert_as_if_nothing_had_happened(run, undisturbed)
        self.assertEqual(run.summary()["terms"], 2, "it went back")

    def run_with_a_flip_before_the_end(self, workers, flip):
        """A run in which a bit of a worker's weights flips after the last comparison of weights
        before the end, that before the checkpoint of step 450. `flip(flipper, run)` gives the pid
        of that worker."""
        flipper = BitFlipper(BIN / "lockstep-worker")
        job = self.job(self.small_data(), **{**FROZEN, "train": {**FROZEN["train"],
                                                                 "check_every": 400}})
        undisturbed = self.finish(job, "--workers", 1, name="undisturbed")
        run = self.start(job, "--workers", workers, slot_ms=10)
        run.wait_for_step(405)
        return run, undisturbed, flip(flipper, run)

    def test_weights_that_differ_at_the_end_are_no_end(self):
        def flip(flipper, run):
            victim = run.worker(1)
            flipper.at_check(victim, lambda: flip_one_bit(run, victim), DEADLINE_S, SPREAD_STEPS)
            return victim
        run, undisturbed, victim = self.run_with_a_flip_before_the_end(3, flip)
        self.assert_as_if_nothing_had_happened(run, undisturbed)
        said = self.corruptions(run)
        self.assertEqual(len(said), 1, said)
        self.assert_told(said[0], names=[f"pid {victim}", "step 500", "2 workers"], says="weights")
        self.assert_nobody_is_put_out_but(run, 1)

    def test_weights_that_change_after_the_last_check_become_no_result(self):
        def flip(flipper, run):
            writer = run.worker(0)
            flipper.before_last_checkpoint(writer, lambda: flip_one_bit(run, writer), DEADLINE_S)
            return writer
        run, undisturbed, writer = self.run_with_a_flip_before_the_end(2, flip)
        self.assertEqual(run.wait(), 70, run.text()[-3000:])
        self.assert_no_crash(run.text())
        self.assert_told(run.summary()["message"], names=[f"pid {writer}", "step 500"],
                         says="at fault")
        kept = sorted(path.name for path in (run.run_dir / "checkpoints").glob("step-*"))
        self.assertTrue(kept and kept[-1].startswith("step-0000000450-"), kept)
        self.finish(self.scratch / "job.yaml", "--workers", 2, "--resume")
        self.assert_same_result(run, undisturbed)

    def test_by_policy_the_run_goes_on_without_the_worker_and_the_audit_says_since_when(self):
        run, undisturbed, said = self.run_in_which(
            lambda flipper, victim: flipper.flip_gradient(victim, DEADLINE_S),
            on_corruption="continue")
        found = json.loads(lockstep("audit", run.run_dir, "--json").stdout)
        self.assertIsNotNone(found["tainted_from_step"])
        self.assert_told(said, names=[f"step {found['tainted_from_step']}", "train.on_corruption"])
        self.assertEqual(run.summary()["terms"], 1)  # nothing was computed again
        self.assertNotEqual(run.summary()["weights_sha256"],
                            undisturbed.summary()["weights_sha256"])
        self.assertEqual(len(run.history()), len(undisturbed.history()))
        self.assert_nothing_left(run)


if __name__ == "__main__":
    unittest.main()
