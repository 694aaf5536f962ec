"""data.mix in real runs: several data sets by weight, the same bits for any number of workers, after
a kill and resumed, every sample proven, replayed and diagnosed."""
import unittest

from harness import LockstepTest, lockstep, synthetic_dataset

# 7 : 2 : 1 of 300, 90 and 20 samples: an epoch is 42 blocks of 10 and what brings 6 more of the
# first; the second is passed in the second epoch, the third twice an epoch.
SIZES = {"web": 300, "code": 90, "books": 20}
UNITS = 428
TRAIN = {"global_batch": 32, "slots": 4, "epochs": 3}  # 14 steps an epoch, the last of 12


class MixedData(LockstepTest):
    def sets(self):
        return {name: synthetic_dataset(self.scratch / name, train=size, seed=seed)
                for seed, (name, size) in enumerate(SIZES.items())}

    def mixed_job(self, train, **more):
        self.sets()
        data = {"train": "web", "eval": "web", "mix_weight": 7,
                "mix": [{"path": "code", "weight": 2}, {"path": "books"}], **more}
        return self.job("unused", data=data, train=train)

    def assert_proven(self, run, samples):
        found = self.audit(run)
        self.assertEqual(found["samples"], samples)
        self.assertEqual([(part["weight"], part["samples"]) for part in found["mixture"]],
                         [(7, 300), (2, 90), (1, 20)])

    def test_two_workers_give_the_weights_of_one_and_every_sample_is_proven(self):
        job = self.mixed_job(TRAIN)
        one = self.finish(job, "--workers", 1, name="one")
        self.assertEqual([step["samples"] for step in one.history()[:14]],
                         [32] * 13 + [UNITS - 13 * 32])
        run = self.finish(job, "--workers", 2)
        self.assert_same_result(run, one)
        self.assert_proven(run, 3 * UNITS)
        self.succeed("replay", run.run_dir, "--step", 20)
        other = self.finish(job, "--workers", 1, "data.mix.1.weight=2", name="other")
        self.assertNotEqual(other.summary()["weights_sha256"], one.summary()["weights_sha256"])

    def test_blocks_are_shuffled_in_each_set(self):
        job = self.mixed_job(TRAIN, shuffle="block", block_samples=8, window_blocks=4)
        one = self.finish(job, "--workers", 1, name="one")
        two = self.finish(job, "--workers", 2, name="two")
        self.assert_same_result(two, one)
        self.assert_proven(two, 3 * UNITS)

    def test_a_resume_goes_on_in_the_middle_of_passes_and_with_another_mixture_is_refused(self):
        job = self.mixed_job(TRAIN)
        whole = self.finish(job, "--workers", 1, name="whole")
        run = self.finish(job, "--workers", 3, "train.max_steps=19")
        resume = ["run", job, "--resume", "--run-dir", run.run_dir]
        code = self.scratch / "code"
        other = synthetic_dataset(self.scratch / "other", train=20, seed=9)
        for said, subjects in (
                ("data.mix.0.weight=3", ["data.mix.0.weight", 2, 3]),
                ("data.mix_weight=6", ["data.mix_weight", 7, 6]),
                ("data.mix=[{path: %s, weight: 2}]" % code, ["data.mix.1.weight", 1, "not set"]),
                (f"data.mix.1.path={code}", ["code/train-images-idx3-ubyte", "weight"]),
                (f"data.mix.1.path={other}", ["data set 2", "fingerprint"]),
        ):
            self.assert_fails(lockstep(*resume, said), 64, names=subjects)
        self.succeed(*resume, "--workers", 2, "train.max_steps=0")
        self.assert_same_result(run, whole)
        self.assert_proven(run, 3 * UNITS)

    def test_a_killed_worker_changes_nothing(self):
        job = self.mixed_job({"global_batch": 32, "slots": 4, "max_steps": 200})
        run = self.assert_a_kill_changes_nothing(job)
        self.assertGreater(run.summary()["generations"], 1)

    def test_data_sets_that_do_not_fit_are_refused_with_both_files(self):
        job = self.mixed_job(TRAIN)
        wide = synthetic_dataset(self.scratch / "wide", train=50, size=14)
        self.assert_fails(
            lockstep("run", job, "--run-dir", self.scratch / "run", f"data.mix.1.path={wide}"), 64,
            names=[wide / "train-images-idx3-ubyte", self.scratch / "web/train-images-idx3-ubyte"])

    def test_the_doctor_takes_a_mixture(self):
        job = self.mixed_job({**TRAIN, "threads_per_worker": 1})
        code, text = self.outcome("doctor", job, "--seconds", 3)
        self.assertIn(code, (0, 1), text)
        self.assertIn("training", text)


if __name__ == "__main__":
    unittest.main()
