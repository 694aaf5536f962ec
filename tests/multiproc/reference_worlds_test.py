"""Reference tests for the night, which reference_small_test and reference_precision_test leave out:
other small models in every world, and other pairs of a model and a precision."""
import unittest

from reference_runs import ReferenceTest


class SmallWorlds(ReferenceTest):
    MODELS = ("mlp", "vit", "gpt2", "bert")

    def test_four_slots_train_as_in_eager_pytorch_in_every_world_and_through_a_death(self):
        jobs = [(name, self.job_of(name, slots=4)) for name in self.MODELS]
        runs = self.assert_as_in_eager_pytorch(jobs)
        for (name, job), whole in zip(jobs, runs):
            with self.subTest(model=name):
                self.assert_the_same_in_any_world(job, whole)


class MixedWorlds(ReferenceTest):
    MODELS = ("unet", "gpt2")

    def test_mixed_precision_has_the_bits_of_pytorchs_autocast(self):
        self.assert_as_in_eager_pytorch([(name, self.job_of(name, precision=precision))
                                         for name, precision in (("unet", "fp16"), ("gpt2", "bf16"))])

    def test_mixed_precision_is_the_same_in_every_world_and_through_a_death(self):
        job = self.job_of("unet", slots=4, precision="bf16")
        self.assert_the_same_in_any_world(job, self.finish(job, "--workers", 1, name=job.stem))


if __name__ == "__main__":
    unittest.main()
