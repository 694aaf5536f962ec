"""Parts of a data set in real runs: held out for evaluation, or a share to train on."""
import pathlib
import unittest

from fails_with import lacking
from harness import LockstepTest, lockstep, synthetic_dataset

TRAIN = {"global_batch": 32, "slots": 4, "epochs": 2}


class Split(LockstepTest):
    def setUp(self):
        super().setUp()
        self.data = synthetic_dataset(self.scratch / "data", train=600, evaluation=100)
        for path in self.data.glob("t10k-*"):
            path.unlink()

    def start_and_finish(self, name, workers, *overrides):
        return self.finish(self.job_of(), "--workers", workers, *overrides, name=name)

    def job_of(self):
        return self.job(self.data, data={"train": str(self.data)}, train=TRAIN)

    def test_a_holdout_is_the_same_for_any_number_of_workers_and_proven(self):
        one = self.start_and_finish("one", 1, "data.holdout=0.1")
        three = self.start_and_finish("three", 3, "data.holdout=0.1")
        self.assert_same_result(three, one)
        self.assertEqual(lacking(one.text(), names=[540, 60]), [], one.text())
        self.assertIn("eval_accuracy", one.summary())
        self.assertEqual(sum(row["samples"] for row in one.history()), 2 * 540)
        self.assertRegex(self.succeed("replay", three.run_dir, "--step", 20),
                         rf"{self.data}/train-images-idx3-ubyte\b.* \d+\n")

    def test_a_resume_with_another_share_is_refused_and_with_the_same_goes_on(self):
        job = self.job_of()
        run = self.finish(job, "--workers", 2, "data.train.fraction=0.5", "train.epochs=1")
        resume = ["run", job, "--resume", "--run-dir", run.run_dir]
        self.assert_fails(lockstep(*resume, "data.train.fraction=0.25"), 64,
                          names=["data.train.fraction", "0.5", "0.25"])
        whole = self.finish(job, "--workers", 1, "data.train.fraction=0.5", name="whole")
        self.succeed(*resume, "--workers", 3, "data.train.fraction=0.5")
        self.assert_same_result(run, whole)
        self.assertEqual(sum(row["samples"] for row in run.history()), 2 * 300)

    def test_a_holdout_of_nothing_is_refused_before_anything_starts(self):
        job = self.job_of()
        self.assert_fails(
            lockstep("run", job, "--run-dir", self.scratch / "none", "data.holdout=0.001"), 64,
            names=["data.holdout", "0.001", 600, self.data / "train-images-idx3-ubyte"])
        self.assertFalse(pathlib.Path(self.scratch / "none" / "journal.db").exists())


if __name__ == "__main__":
    unittest.main()
