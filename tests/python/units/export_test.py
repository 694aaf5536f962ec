"""lockstep.export_program: what it saves, that it computes what the model does, and what it refuses:
parts of models that torch.export would drop or freeze."""

from __future__ import annotations

import json
import os
import pathlib
import re
import warnings

import export_models as models
import torch
from export_support import ExportTest, unittest
from torch import nn

import lockstep

READER = pathlib.Path(__file__).resolve().parents[3] / "worker/model/exported_program/read_program.cc"
LABELS = torch.zeros(4, dtype=torch.long)


class Export(ExportTest):
    def opened(self, names: tuple[str, str]) -> list[nn.Module]:
        return [torch.export.load(name).module() for name in names]

    def test_both_programs_compute_what_the_model_does_and_leave_it_as_it_was(self) -> None:
        for model, options in ((models.Base(), {}),
                               (models.WithOperators(), {"derivatives": [models.Square]})):
            model.eval()
            state = {name: value.clone() for name, value in model.state_dict().items()}
            random_state = torch.get_rng_state()
            names = self.saved(model, **options)
            self.assertEqual([os.path.basename(name) for name in names], ["m.pt2", "m.eval.pt2"])
            self.assertFalse(model.training)
            self.assertTrue(torch.equal(torch.get_rng_state(), random_state))
            for name, value in model.state_dict().items():
                self.assertTrue(torch.equal(value, state[name]), name)
            self.assertTrue(all(p.grad is None for p in model.parameters()))
            program = self.opened(names)[1]
            for samples in (1, 2, 4, 9):
                x = torch.randn(samples, 1, 8, 8)
                self.assertTrue(torch.equal(program(x), model(x)))
            self.assertEqual(sorted(os.listdir(self.folder)), ["m.eval.pt2", "m.pt2"])

    def test_training_has_the_bits_of_the_model_where_nothing_says_otherwise(self) -> None:
        model = models.Base()
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # it warns where bits differ
            program, _ = self.opened(self.saved(model))
        gradients = []
        for forward in (model, program):
            torch.manual_seed(7)
            output = forward(self.example)
            gradients.append(torch.autograd.grad(output.square().sum(), [*forward.parameters()]))
        self.assertEqual(len(gradients[0]), 6)
        self.assertTrue(all(map(torch.equal, *gradients)))

    def test_arguments_by_name_and_by_position_keep_their_names(self) -> None:
        mask, label = torch.ones(4, 3), torch.zeros(4, dtype=torch.long)
        for example in ((self.example, label, mask),
                        {"x": self.example, "label": label, "mask": mask}):
            names = lockstep.export_program(models.WithLoss(), example, self.folder / "m")
            signature = torch.export.load(names[0]).graph_signature
            self.assertEqual(signature.user_inputs, ("x", "label", "mask"))

    def test_an_evaluation_of_another_shape(self) -> None:
        larger = torch.randn(2, 1, 12, 12)
        model = models.Base()
        _, program = self.opened(self.saved(model, eval_example=larger))
        model.eval()
        self.assertTrue(torch.equal(program(larger), model(larger)))

    def test_both_files_say_what_the_model_takes(self) -> None:
        names = self.saved(models.Base(), classes=["cat", "dog", "owl"], transforms=["normalize"])
        for name in names:
            files = {"lockstep.json": ""}
            torch.export.load(name, extra_files=files)
            self.assertEqual(json.loads(files["lockstep.json"]), {
                "torch": torch.__version__, "model": "export_models.Base",
                "inputs": [{"name": "x", "dtype": "float32", "shape": ["batch", 1, 8, 8]}],
                "classes": ["cat", "dog", "owl"], "transforms": ["normalize"]})

    def test_modules_in_evaluation_of_a_model_in_training_stay_so(self) -> None:
        model = models.Base().train()
        model.norm.eval()
        program, _ = self.opened(self.saved(model))
        self.assertEqual([model.training, model.norm.training], [True, False])
        program(self.example)
        self.assertTrue(torch.equal(dict(program.named_buffers())["norm.running_mean"],
                                    torch.zeros(4)))

    def test_tied_and_parametrized_weights_and_attention(self) -> None:
        normed = models.Base()
        nn.utils.parametrizations.weight_norm(normed.conv)
        self.saved(normed)
        self.saved(models.Tied(), example=torch.zeros(4, 5, dtype=torch.long))
        encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 1)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            self.saved(nn.Sequential(nn.Flatten(1, 2), encoder, nn.Linear(8, 3)))

    def test_a_norm_that_needs_two_samples(self) -> None:
        model = nn.Sequential(nn.Flatten(), nn.Linear(64, 4), nn.BatchNorm1d(4))
        self.refused(model, "1 of the 4 samples", "least_samples=2")
        names = self.saved(model, least_samples=2)
        ranges = [[(int(r.lower), int(r.upper)) for r in torch.export.load(name).range_constraints.values()]
                  for name in names]
        self.assertEqual(ranges, [[(2, 4096)], [(1, 4096)]])

    def test_what_a_job_does_otherwise_is_told(self) -> None:
        for model, words in ((models.Averaging(), "seen"), (models.Noise(), "random numbers")):
            with self.assertWarnsRegex(UserWarning, words):
                self.saved(model)

    def test_nothing_is_left_where_saving_fails(self) -> None:
        with self.assertRaisesRegex(lockstep.Misuse, "no directory"):
            lockstep.export_program(models.Base(), self.example, self.folder / "none" / "m.pt2")
        (self.folder / "m.eval.pt2").mkdir()
        (self.folder / "m.eval.pt2" / "full").touch()
        with self.assertRaises(OSError):
            self.saved(models.Base())
        self.assertEqual([name for name in os.listdir(self.folder) if "tmp" in name], [])

    def test_it_writes_the_schema_that_lockstep_reads(self) -> None:
        from lockstep._export import _programs
        numbers = re.findall(r"kSchemaM\w+ = (\d+);", READER.read_text())
        self.assertEqual([*map(int, numbers)], [_programs.SCHEMA_MAJOR, _programs.SCHEMA_MINOR])
        _programs.SCHEMA_MINOR = -1
        try:
            self.refused(models.Base(), torch.__version__, "8.", "export with torch 2.11")
        finally:
            _programs.SCHEMA_MINOR = int(numbers[1])


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
