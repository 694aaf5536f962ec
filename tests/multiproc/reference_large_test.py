"""torchvision's larger models train with the bits of eager PyTorch, the same with two workers, and
what comes out loads there again."""
import unittest

from reference_runs import ReferenceTest


class Large(ReferenceTest):
    MODELS = ("resnet50", "vit_b_16", "convnext_tiny")
    STEPS = 6  # of 25 to 86 million parameters; tests/bench/exported_models.py compares 20
    CHECKPOINT_STEPS = 100

    def test_one_slot_gives_the_bits_of_eager_pytorch(self):
        self.assert_as_in_eager_pytorch([(name, self.job_of(name)) for name in self.MODELS])

    def test_two_workers_give_the_weights_of_one(self):
        for name in self.MODELS:
            with self.subTest(model=name):
                job = self.job_of(name, slots=2, max_steps=3)
                one = self.finish(job, "--workers", 1, name=job.stem)
                two = self.finish(job, "--workers", 2, name=f"{job.stem}-of-2")
                self.assert_same_result(two, one)
                self.assertEqual(two.summary()["eval_loss"], one.summary()["eval_loss"])


if __name__ == "__main__":
    unittest.main()
