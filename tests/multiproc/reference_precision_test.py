"""Programs in mixed precision train as under PyTorch's autocast, with the same bits in every world;
and replay of transformers' GPT-2 by the paths of its modules. At night reference_worlds_test plays
the other pairs of a model and a precision."""
import unittest

from fails_with import lacking
from reference_runs import ReferenceTest


class Precision(ReferenceTest):
    MODELS = ("unet", "gpt2")

    def test_mixed_precision_has_the_bits_of_pytorchs_autocast(self):
        self.assert_as_in_eager_pytorch([(name, self.job_of(name, precision=precision))
                                         for name, precision in (("unet", "bf16"), ("gpt2", "fp16"))])

    def test_mixed_precision_is_the_same_in_every_world_and_through_a_death(self):
        job = self.job_of("gpt2", slots=4, precision="fp16")  # the one that has a loss scale, too
        self.assert_the_same_in_any_world(job, self.finish(job, "--workers", 1, name=job.stem))

    def test_a_step_of_gpt2_is_replayed_by_the_paths_of_its_modules(self):
        run = self.finish(self.job_of("gpt2", slots=2), "--workers", 2)
        text = self.succeed("replay", run.run_dir, "--step", 7)
        gradients, _, rest = text.partition("\nactivations ")
        activations, _, _ = rest.partition("\nsamples")
        layer = "model.transformer.h.1"
        self.assertEqual(lacking(gradients, names=[f"{run.history()[6]['loss']:.9g}",
                                                   f"{layer}.attn.c_attn.weight",
                                                   "model.transformer.wte.weight"]), [], text)
        self.assertEqual(lacking(activations, names=[f"{layer}.attn.c_attn", f"{layer}.mlp.c_proj",
                                                     "model.transformer.ln_f"]), [], text)


if __name__ == "__main__":
    unittest.main()
