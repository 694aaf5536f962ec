"""lockstep.export_program refuses parts of models that torch.export would drop or freeze."""

from __future__ import annotations

import export_models as models
import torch
from export_support import ExportTest, unittest
from torch import nn

LABELS = torch.zeros(4, dtype=torch.long)


class Refusals(ExportTest):
    def test_backwards_that_are_no_operators(self) -> None:
        for function in (models.Sign, models.Reversal, models.Clipped):
            self.refused(models.Applying(function), function.__name__, "export_models.py, line",
                         "(f(x) - x).detach()")
        self.refused(models.Applying(models.Sign), "the gradient of conv.weight",
                     derivatives=[models.Sign])
        self.refused(models.Reentrant(), "use_reentrant=False")

    def test_hooks(self) -> None:
        hooked, late, module, before = (models.Base() for _ in range(4))
        hooked.out.weight.register_hook(lambda g: -g)
        late.out.bias.register_post_accumulate_grad_hook(lambda p: None)
        module.norm.register_full_backward_hook(lambda m, i, o: None)
        before.norm.register_full_backward_pre_hook(lambda m, o: None)
        for model, where in ((hooked, "out.weight"), (late, "out.bias"), (module, "norm"),
                             (before, "norm"), (models.Hooked(), "export_models.py, line")):
            self.refused(model, where, "hook", "drops")
        everywhere = nn.modules.module.register_module_full_backward_hook(lambda m, i, o: None)
        self.addCleanup(everywhere.remove)
        self.refused(models.Base(), "register_module_full_backward_hook()")

    def test_what_only_the_gradients_show(self) -> None:
        for model in (models.HookedNode(), models.LossySaving()):
            self.refused(model, "the gradient of conv.weight", "backward", "SCRIPTS.md")

    def test_what_a_program_would_keep_as_it_was(self) -> None:
        for model, *words in ((models.Counting(), "calls", "training"),
                              (models.CountingOutside(), "other results", "make it a buffer"),
                              (models.LayerDrop(), "Python's random", "torch.rand"),
                              (models.InList(), "scales", "nn.ParameterList"),
                              (models.Auxiliary(), "balance", '"loss"', "detach()"),
                              (models.DoubleBuffer(), "total", "float64")):
            self.refused(model, *words)

    def test_dropout_in_evaluation(self) -> None:
        for model in (models.AlwaysDropout(), models.AttentionDropout()):
            self.refused(model, "evaluation", "export_models.py, line", "training=self.training")

    def test_what_torch_export_cannot_follow(self) -> None:
        for model, *words in ((models.Branching(), "x.sum() > 0", "torch.where()"),
                              (models.Fixed(), "4 samples alone", "x.shape[0]"),
                              (models.Even(), "number of samples", "least_samples=3"),
                              (models.Numpy(), "NumPy", "export_models.py, line"),
                              (models.Forces(), "cannot export the model for training")):
            self.refused(model, *words)

    def test_what_lockstep_does_not_run(self) -> None:
        self.refused(models.Conditional(), "cond", "torch.where()")
        self.refused(models.Custom(), "lockstep_test.twice", "aten")
        self.refused(models.Base().double(), "conv.weight", "float64", "model.float()")
        self.refused(models.Base().requires_grad_(False), "requires_grad_(True)")
        self.refused(nn.Sequential(nn.LazyLinear(3)), "0.weight", "call the model once")

    def test_results_without_a_meaning(self) -> None:
        self.refused(models.Several(), "a tuple of 2", '"loss"')
        self.refused(models.Squeezing(), "() for 1 sample", "squeeze(1)")

    def test_models_in_other_clothes(self) -> None:
        self.refused(torch.compile(models.Base()), "torch.compile()")
        self.refused(nn.DataParallel(models.Base()), "model.module")
        self.refused(torch.jit.script(nn.Linear(8, 8)), "model.name: torchscript")
        self.refused(lambda x: x, "torch.nn.Module")

    def test_examples_that_do_not_fit(self) -> None:
        model = models.WithLoss()
        for example, *words in ((self.example, "'label'", "dictionary"),
                                ((self.example, 3), "example[1]", "int"),
                                ((self.example[:1], LABELS[:1]), "at least 2"),
                                ((self.example, LABELS[:2]), "example[0] 4", "example[1] 2"),
                                ((self.example, torch.tensor(1)), "example[1]", "no dimension"),
                                ({"x": self.example, "target": LABELS}, "forward(x, label, mask)")):
            self.refused(model, *words, example=example)
        self.refused(model, "eval_example", example=(self.example, LABELS), eval_example=self.example)
        self.refused(models.Base(), "most_samples", most_samples=3)
        self.refused(models.Base(), "classes", classes="cat")


if __name__ == "__main__":
    unittest.main()
