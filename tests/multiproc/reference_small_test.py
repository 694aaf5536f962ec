"""Small models of PyTorch and transformers train with the bits of eager PyTorch, the same in every
world and through a death, and what comes out opens there again. At night reference_worlds_test plays
the other worlds."""
import unittest

from reference_runs import ReferenceTest


class Small(ReferenceTest):
    MODELS = ("mlp", "tied_lm", "vit", "unet", "gpt2", "bert")
    IN_EVERY_WORLD = ("tied_lm", "unet")  # one of tokens, one of images

    def test_one_slot_gives_the_bits_of_eager_pytorch_for_any_batch(self):
        jobs = [(name, self.job_of(name)) for name in self.MODELS]
        jobs += [(name, self.job_of(name, global_batch=batch, max_steps=6))
                 for name, batch in (("tied_lm", 1), ("unet", 2), ("tied_lm", 4), ("unet", 7))]
        self.assert_as_in_eager_pytorch(jobs)

    def test_four_slots_train_as_in_eager_pytorch_in_every_world_and_through_a_death(self):
        jobs = [(name, self.job_of(name, slots=4)) for name in self.IN_EVERY_WORLD]
        runs = self.assert_as_in_eager_pytorch(jobs)
        for (name, job), whole in zip(jobs, runs):
            with self.subTest(model=name):
                self.assert_the_same_in_any_world(job, whole)


if __name__ == "__main__":
    unittest.main()
