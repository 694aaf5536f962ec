"""lockstep.export_program: what it saves, and what it refuses because torch.export drops it."""

from __future__ import annotations

import os
import pathlib
import tempfile
import unittest

import torch
from torch import nn

import lockstep


class Base(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm = nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4)
        self.drop, self.out = nn.Dropout(0.5), nn.Linear(4, 3)

    def middle(self, x: torch.Tensor) -> torch.Tensor:
        return x

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.out(self.drop(self.middle(self.norm(self.conv(x)))).mean((2, 3)))


class Sign(torch.autograd.Function):
    @staticmethod
    def forward(_: object, x: torch.Tensor) -> torch.Tensor:
        return x.sign()

    @staticmethod
    def backward(_: object, g: torch.Tensor) -> torch.Tensor:
        return g


class Reversal(torch.autograd.Function):
    @staticmethod
    def forward(_: object, x: torch.Tensor) -> torch.Tensor:
        return x.view_as(x)

    @staticmethod
    def backward(_: object, g: torch.Tensor) -> torch.Tensor:
        return -g


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx: object, x: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: object, g: torch.Tensor) -> torch.Tensor:
        return 2 * ctx.saved_tensors[0] * g


class StraightThrough(Base):
    def middle(self, x: torch.Tensor) -> torch.Tensor:
        return Sign.apply(x)


class Reversed(Base):
    def middle(self, x: torch.Tensor) -> torch.Tensor:
        return Reversal.apply(x)


class Hooked(Base):
    def middle(self, x: torch.Tensor) -> torch.Tensor:
        if x.requires_grad:
            x.register_hook(lambda g: -g)
        return x


class WithOperators(Base):
    def middle(self, x: torch.Tensor) -> torch.Tensor:
        return Square.apply(x + (x.sign() - x).detach())


class ExportTest(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.example = torch.randn(4, 1, 8, 8)

    def saved(self, model: nn.Module) -> tuple[str, str]:
        return lockstep.export_program(model, self.example, self.folder / "m")

    def test_both_programs_compute_what_the_model_does_and_leave_it_as_it_was(self) -> None:
        for model in (Base(), WithOperators()):
            model.eval()
            state = {name: value.clone() for name, value in model.state_dict().items()}
            names = self.saved(model)
            self.assertEqual([os.path.basename(name) for name in names], ["m.pt2", "m.eval.pt2"])
            self.assertFalse(model.training)
            for name, value in model.state_dict().items():
                self.assertTrue(torch.equal(value, state[name]), name)
            self.assertTrue(all(p.grad is None for p in model.parameters()))
            program = torch.export.load(names[1]).module()
            self.assertTrue(torch.equal(program(self.example), model(self.example)))
            self.assertEqual(sorted(os.listdir(self.folder)), ["m.eval.pt2", "m.pt2"])

    def test_what_torch_export_drops_is_refused_by_name(self) -> None:
        hooked = Base()
        hooked.out.weight.register_hook(lambda g: -g)
        late = Base()
        late.out.bias.register_post_accumulate_grad_hook(lambda p: None)
        module = Base()
        module.norm.register_full_backward_hook(lambda m, i, o: None)
        for model, named in ((StraightThrough(), ["Sign", "conv.weight"]),
                             (Reversed(), ["Reversal", "conv.weight"]),
                             (Hooked(), ["export_test.py", "conv.weight"]),
                             (hooked, ["out.weight", "hook"]), (late, ["out.bias", "hook"]),
                             (module, ["norm", "hook"])):
            with self.subTest(named), self.assertRaises(lockstep.Misuse) as refused:
                self.saved(model)
            for word in named:
                self.assertIn(word, str(refused.exception))
            self.assertEqual(os.listdir(self.folder), [])


if __name__ == "__main__":
    unittest.main()
