"""Small models of PyTorch and transformers train as in eager PyTorch on four slots, the same in
every world and through a death."""
import unittest

from reference_runs import ReferenceTest


class Worlds(ReferenceTest):
    MODELS = ("mlp", "tied_lm", "vit", "unet", "gpt2", "bert")

    def test_four_slots_train_as_in_eager_pytorch_in_every_world_and_through_a_death(self):
        jobs = [(name, self.job_of(name, slots=4)) for name in self.MODELS]
        runs = self.assert_as_in_eager_pytorch(jobs)
        for (name, job), whole in zip(jobs, runs):
            with self.subTest(model=name):
                self.assert_the_same_in_any_world(job, whole)


if __name__ == "__main__":
    unittest.main()
