"""torchvision's networks of convolutions train with the bits of eager PyTorch, the same in every
world and through a death, and what comes out loads there again."""
import unittest

from reference_runs import ReferenceTest


class Convolutions(ReferenceTest):
    MODELS = ("resnet18", "mobilenet_v3_small")

    def test_one_slot_gives_the_bits_of_eager_pytorch(self):
        self.assert_as_in_eager_pytorch([(name, self.job_of(name)) for name in self.MODELS])

    def test_every_world_and_a_death_give_the_same_weights(self):
        for name in self.MODELS:
            with self.subTest(model=name):
                job = self.job_of(name, slots=4, max_steps=10)
                whole = self.finish(job, "--workers", 1, name=job.stem)
                self.assert_the_same_in_any_world(job, whole)


if __name__ == "__main__":
    unittest.main()
