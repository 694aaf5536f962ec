"""The first promise: the same weights and losses for any number of workers, and after a stop."""
import signal
import unittest

from harness import FASHION, LockstepTest, synthetic_dataset, trace


def contents(run_dir):
    """The files that a refused resume must not touch."""
    return {name: (run_dir / name).read_bytes()
            for name in ("job.yaml", "job.pb", "facts.pb", "summary.json", "history.jsonl", "token",
                         "coordinator.json")}


MODEL = {"name": "cnn", "dropout": 0.25, "batch_norm": True}


class SameBits(LockstepTest):
    def test_one_to_four_workers_give_the_same_weights_and_losses(self):
        # The last step of an epoch has three samples for four slots, so one slot is empty.
        data = synthetic_dataset(self.scratch / "data", train=603, size=16)
        job = self.job(data, model=MODEL, train={"global_batch": 60, "slots": 4, "epochs": 2})
        runs = [self.finish(job, "--workers", n, name=f"w{n}") for n in (1, 2, 3, 4)]
        self.assertEqual(len(runs[0].history()), 22)
        self.assertEqual(runs[0].history()[-1]["samples"], 3)
        for run in runs[1:]:
            self.assertEqual(run.summary()["weights_sha256"], runs[0].summary()["weights_sha256"])
            self.assertEqual(run.summary()["eval_loss"], runs[0].summary()["eval_loss"])
            self.assertEqual(trace(run), trace(runs[0]))

    @unittest.skipUnless(FASHION.exists(), "package dataset-fashion-mnist is not installed")
    def test_the_weights_do_depend_on_the_seed(self):
        job = self.job(FASHION, train={"global_batch": 2857, "slots": 4, "max_steps": 3})
        a = self.finish(job, "--workers", 2, name="a").summary()["weights_sha256"]
        b = self.finish(job, "seed=12", "--workers", 2, name="b").summary()["weights_sha256"]
        self.assertNotEqual(a, b)


class StoppedAndResumed(LockstepTest):
    def setUp(self):
        super().setUp()
        # 600 = 9 * 64 + 24: 10 steps an epoch.
        self.train = {"global_batch": 64, "slots": 4, "epochs": 40}
        self.file = self.job(self.small_data(), model=MODEL, train=self.train,
                             checkpoint={"every_steps": 7, "keep": 2})

    def test_an_interrupt_in_mid_epoch_and_another_world_change_nothing(self):
        whole = self.finish(self.file, "--workers", 1, name="whole")
        cut = self.start(self.file, "--workers", 3, name="cut", slot_ms=20)
        cut.wait_for_step(33)
        cut.process.send_signal(signal.SIGINT)
        self.assertEqual(cut.wait(), 75, cut.text()[-2000:])
        self.assert_nothing_left(cut)
        self.assertLess(len(cut.history()), 10 * self.train["epochs"])
        rest = self.finish(self.file, "--resume", "--workers", 2, name="cut")
        self.assertEqual(rest.summary()["weights_sha256"], whole.summary()["weights_sha256"])
        self.assertEqual(trace(rest), trace(whole))

    def test_a_longer_run_may_be_asked_for_on_resume(self):
        whole = self.finish(self.file, "train.max_steps=25", "--workers", 2, name="whole")
        self.finish(self.file, "train.max_steps=13", "--workers", 4, name="part")
        rest = self.finish(self.file, "train.max_steps=25", "--resume", "--workers", 1, name="part")
        self.assertEqual(rest.summary()["weights_sha256"], whole.summary()["weights_sha256"])
        self.assertEqual(trace(rest), trace(whole))

    def test_what_a_resume_cannot_be_is_refused_and_leaves_the_run_as_it_is(self):
        run = self.finish(self.file, "train.max_steps=13", "--workers", 2)
        self.refuse_another_identity()
        self.refuse_another_data_set()
        self.refuse_fewer_steps_than_are_done()
        self.leave_what_is_finished(run)

    def refuse_another_identity(self):
        """The refusal shows both values."""
        for override, old, new in (("seed=99", "11", "99"), ("train.global_batch=60", "64", "60"),
                                   ("train.slots=2", "4", "2"), ("model.dropout=0.5", "0.25", "0.5"),
                                   ("optimizer.name=sgd", "adamw", "sgd")):
            with self.subTest(override):
                before = contents(self.scratch / "run")
                run = self.start(self.file, "--resume", override, "train.max_steps=30")
                self.assert_fails(run, 64, names=[override.split("=")[0], old, new])
                self.assertEqual(contents(run.run_dir), before)

    def refuse_another_data_set(self):
        other = synthetic_dataset(self.scratch / "other", seed=6)
        before = contents(self.scratch / "run")
        run = self.start(self.file, "--resume", f"data.train.path={other}")
        self.assert_fails(run, 64, names="fingerprint")
        self.assertEqual(contents(run.run_dir), before)

    def refuse_fewer_steps_than_are_done(self):
        before = contents(self.scratch / "run")
        again = self.start(self.file, "train.max_steps=12", "--resume")
        self.assert_fails(again, 64, names=["train.max_steps", 13, 12])
        self.assertEqual(contents(again.run_dir), before)

    def leave_what_is_finished(self, run):
        before = contents(run.run_dir)
        again = self.finish(self.file, "train.max_steps=13", "--resume")
        self.assertIn(run.summary()["weights_sha256"], again.text())
        self.assertEqual(contents(run.run_dir), before)


if __name__ == "__main__":
    unittest.main()
