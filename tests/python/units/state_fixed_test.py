"""Objects into which a loop's body may not write, and objects that no code may change once a run
has begun."""

from __future__ import annotations

import unittest
from typing import Any, Callable

import torch
from torch import nn, optim
from torch.optim.swa_utils import AveragedModel

from lockstep._state import Kept, MisuseError, in_memory, same_bits

from state_models import Plain, batch, kept


class Shadow:
    """An average as scripts write it themselves."""

    def __init__(self, model: nn.Module) -> None:
        self.model, self.steps = model, 0
        self.tensors = [p.detach().clone() for p in model.parameters()]

    def update(self) -> None:
        self.steps += 1
        for mine, p in zip(self.tensors, self.model.parameters()):
            mine.mul_(0.9).add_(p.detach(), alpha=0.1)

    def state_dict(self) -> dict[str, Any]:
        return {"tensors": self.tensors, "steps": self.steps}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.tensors, self.steps = state["tensors"], state["steps"]


class Objects:
    """A model in training, with averages of two kinds, after one step."""

    def __init__(self) -> None:
        self.model = Plain()
        self.model.b.bias.requires_grad_(False)
        self.optimizer = optim.SGD([p for p in self.model.parameters() if p.requires_grad], 0.1, 0.9)
        self.ema, self.shadow = AveragedModel(self.model), Shadow(self.model)
        self.kept = kept(model=self.model, optimizer=self.optimizer, ema=self.ema,
                         shadow=self.shadow)
        self.kept.guard()
        self.compute()
        with self.kept.applying():
            self.optimizer.step()
            self.ema.update_parameters(self.model)
            self.shadow.update()

    def compute(self) -> None:
        self.optimizer.zero_grad()
        self.model(batch(0, (4, 7))).square().mean().backward()


class BodyTest(unittest.TestCase):
    def refused(self, change: Callable[[Objects], Any], pattern: str, at_once: bool) -> None:
        """`at_once`: in every slot, not only in those that are looked at closely."""
        objects = Objects()
        for checks in ("trial", "later"):
            if checks == "later" and not at_once:
                continue
            if checks == "trial":
                objects.kept.remember()
            objects.compute()
            objects.kept.check_body()
            with torch.no_grad():
                change(objects)
            with self.assertRaisesRegex(MisuseError, f"The loop body changes {pattern}.*after_step="):
                if checks == "trial":
                    objects.kept.check_same()
                objects.kept.check_body()
            objects.kept.note()

    def test_what_a_body_writes_is_named(self) -> None:
        self.refused(lambda o: o.model.a.weight.clamp_(-0.01, 0.01), "the parameter `a.weight`", True)
        self.refused(lambda o: o.model.b.bias.add_(1), "the parameter `b.bias`", True)
        self.refused(lambda o: o.ema.update_parameters(o.model), "the parameter `ema.module", True)
        self.refused(lambda o: o.model.a.weight.data.clamp_(-0.01, 0.01),
                     "the parameter `a.weight`", False)
        self.refused(lambda o: o.shadow.update(), "the state `shadow.tensors", False)
        self.refused(lambda o: setattr(o.shadow, "steps", 7), "the state of `shadow`", False)
        self.refused(lambda o: o.optimizer.state[o.model.a.bias]["momentum_buffer"].zero_(),
                     "the state of `optimizer`", True)
        self.refused(lambda o: o.optimizer.state.setdefault(o.model.b.bias, {"new": torch.ones(1)}),
                     "the state `new.b.bias`", False)

    def test_a_write_that_changes_no_bit_is_seen_too(self) -> None:
        self.refused(lambda o: o.model.a.weight.clamp_(-99, 99), "the parameter `a.weight`", True)

    def test_a_mode_that_a_body_leaves_changed_is_named(self) -> None:
        model = Plain()
        result = kept(model=model)
        result.guard()
        result.remember()
        model.b.eval()  # in the trial, as the first pass may
        result.check_same()
        result.check_body()
        result.note()
        result.remember()
        model.eval()
        with self.assertRaisesRegex(MisuseError, r"leaves `model` in eval\(\) and found it in train"):
            result.check_same()
            result.check_body()
        model.train()
        with self.assertRaisesRegex(MisuseError, r"leaves `model.b` in train\(\).*after_step="):
            result.check_body()
        with result.applying():
            model.a.eval()
        result.check_body()

    def test_a_body_freezes_nothing_and_a_step_or_the_code_before_the_loop_may(self) -> None:
        model = Plain()
        result = kept(model=model)
        model.a.weight.requires_grad_(False)
        result.guard()
        for _ in range(2):  # in the trial, and later
            model.a.weight.requires_grad_(True)
            with self.assertRaisesRegex(MisuseError, "changes requires_grad of `a.weight`.*after_step="):
                result.check_body()
            model.a.weight.requires_grad_(False)
            result.check_body()
            result.note()
        with result.applying():
            model.a.weight.requires_grad_(True)
            model.b.bias.requires_grad_(False)
        result.check_body()
        result.remember()
        model.b.bias.requires_grad_(True)
        result.check_same()  # of switches check_body() speaks
        with self.assertRaisesRegex(MisuseError, "changes requires_grad of `b.bias`"):
            result.check_body()

    def test_what_no_optimizer_has_may_be_frozen_but_what_was_frozen_stays_so(self) -> None:
        objects = Objects()
        objects.ema.requires_grad_(False)
        objects.kept.check_layout()
        objects.ema.requires_grad_(True)
        with self.assertRaisesRegex(MisuseError, "requires_grad of `ema.module.b.bias`.*frozen for good"):
            objects.kept.check_layout()

    def test_a_large_frozen_model_is_not_copied(self) -> None:
        model = nn.Sequential(nn.Linear(1, 1), nn.Linear(99, 99).requires_grad_(False))
        result = kept(model=model, optimizer=optim.SGD(model[0].parameters(), 0.1))
        result.guard()
        result.remember()
        self.assertEqual(["0.bias", "0.weight", "objects"],
                         sorted(name for _, name in result._read_only._before))
        with torch.no_grad():
            model[1].bias.zero_()
        with self.assertRaisesRegex(MisuseError, "the parameter `1.bias`"):
            result.check_body()

    def test_an_embedding_that_shortens_its_weights_is_refused(self) -> None:
        model = nn.Sequential(nn.Embedding(5, 4, max_norm=1.0), nn.Linear(4, 2))
        with self.assertRaisesRegex(MisuseError, "`model.0`, an Embedding with max_norm="):
            Kept().keep(model=model, optimizer=optim.SGD(model.parameters(), 0.1))


class LayoutTest(unittest.TestCase):
    def test_another_layout_after_a_step_is_named(self) -> None:
        def group(o: Objects) -> None:
            o.optimizer.add_param_group({"params": [o.model.b.bias]})

        def order(o: Objects) -> None:
            o.optimizer.param_groups[0]["params"].reverse()

        def grow(o: Objects) -> None:
            o.model.a.weight.data = torch.zeros(12, 7)

        for change, pattern in (
                (group, "The groups of parameters of `optimizer` were changed"),
                (order, "The groups of parameters of `optimizer` were changed"),
                (grow, r"`a.weight` was float32 \(11, 7\) at run.keep.. and is float32 \(12, 7\)"),
                (lambda o: o.model.double(), "`a.weight` was float32 .* and is float64"),
                (lambda o: o.model.b.bias.requires_grad_(True), "requires_grad of `b.bias`.*freeze it"),
                (lambda o: o.model.add_module("c", nn.Linear(1, 1)), "`model.c.weight` was added"),
                (lambda o: setattr(o.ema, "n_averaged", torch.zeros(2)),
                 r"`ema.n_averaged` was int64 \(\)")):
            objects = Objects()
            objects.kept.check_layout()
            with objects.kept.applying():
                change(objects)
            with self.assertRaisesRegex(MisuseError, pattern):
                objects.kept.check_layout()


class MemoryTest(unittest.TestCase):
    def test_memory_has_the_sign_of_the_numbers(self) -> None:
        plain = torch.tensor([-1.0, 0.0, 2.0])
        lazy = torch.complex(torch.zeros(3), -plain).conj().imag
        self.assertTrue(lazy.is_neg())
        self.assertTrue(same_bits(lazy, plain))
        self.assertEqual([-1.0, 0.0, 2.0], in_memory(lazy).numpy().tolist())
        self.assertFalse(in_memory(lazy).is_neg())
        self.assertFalse(same_bits(torch.tensor(0.0), torch.tensor(-0.0)))
        self.assertTrue(same_bits(torch.tensor(float("nan")), torch.tensor(float("nan"))))


if __name__ == "__main__":
    unittest.main()
