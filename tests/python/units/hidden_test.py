"""A slot leaves values in tensors that no state has. Lockstep names those that the next slot goes
on with, but not those that it only overwrites."""

from __future__ import annotations

import unittest
from typing import Any, Callable
from unittest import mock

import torch
import torchmetrics
from torch import nn

from lockstep import Misuse
from lockstep._hidden import Hidden, Unkept
from lockstep._scaler import refuse_unkept
from lockstep._state import Kept
from lockstep._waits import WAITS


class Meter(nn.Module):
    """Counts in plain attributes, as torchmetrics' metrics do."""

    def __init__(self) -> None:
        super().__init__()
        self.total = torch.zeros(())
        self.seen: list[torch.Tensor] = []

    def update(self, x: torch.Tensor) -> None:
        self.total = self.total + x.sum()

    def reset(self) -> None:
        self.total = torch.zeros(())


class Counted(torchmetrics.SumMetric):
    """Counts in a plain number, too."""

    calls, last = 0, float("nan")

    def update(self, value: torch.Tensor) -> None:
        super().update(value)
        self.calls += 1


class HiddenTest(unittest.TestCase):
    def setUp(self) -> None:
        self.model = nn.Linear(2, 2)
        self.model.meter = Meter()
        self.apart = Meter()
        self.norm = nn.BatchNorm1d(2)
        self.x = torch.ones(3, 2)

    def said_of(self, slot: Callable[[], Any]) -> str:
        """The complaint about a slot that is computed twice, or ""."""
        hidden = Hidden({"model": self.model})
        for _ in range(2):
            slot()
            try:
                hidden.passed("a slot", "do otherwise")
            except Misuse as why:
                return str(why)
        return ""

    def test_a_metric_that_is_no_state_is_named_whatever_it_holds(self) -> None:
        """A maximum is the same after the same slot."""
        self.model.peak, apart = torchmetrics.MaxMetric(), torchmetrics.MaxMetric()
        self.assertIn("`peak._update_count`", self.said_of(lambda: self.model.peak.update(self.x)))
        self.assertIn("`_update_count` of a MaxMetric", self.said_of(lambda: apart.update(self.x)))

        def reset_before_use() -> None:
            for metric in (self.model.peak, apart):
                metric.reset()
                metric.update(self.x)
        self.assertEqual("", self.said_of(reset_before_use))

    def test_plain_numbers_of_a_kept_metric_are_no_state(self) -> None:
        counted = Counted()

        def slot() -> None:
            counted.reset()  # as its states are put back before each slot
            counted.update(self.x)
        hidden = Hidden({"model": self.model, "counted": counted})
        slot()
        hidden.passed("a slot", "do otherwise")
        slot()
        with self.assertRaisesRegex(Misuse, "`counted.calls`"):
            hidden.passed("a slot", "do otherwise")

    def test_what_a_slot_goes_on_with_is_named_inside_of_the_model_and_outside(self) -> None:
        self.assertIn("`meter.total`", self.said_of(lambda: self.model.meter.update(self.x)))
        self.assertIn("`total` of a Meter", self.said_of(lambda: self.apart.update(self.x)))
        self.assertIn("`meter.seen`", self.said_of(lambda: self.model.meter.seen.append(self.x)))
        self.assertIn("`meter.total`", self.said_of(lambda: self.model.meter.total.add_(1)))

        def queue() -> None:  # made by the first slot
            self.model.queue = torch.cat([getattr(self.model, "queue", self.x[:0]), self.x])

        self.assertIn("`queue`", self.said_of(queue))

    def test_a_module_that_is_not_kept_has_no_rule_for_its_buffers(self) -> None:
        self.assertIn("of a BatchNorm1d", self.said_of(lambda: self.norm(self.x)))
        self.assertEqual("", self.said_of(lambda: self.norm.eval()(self.x)))

    def test_what_is_only_overwritten_may_be(self) -> None:
        def cache() -> None:
            self.model.last = self.model(self.x)
            self.model.masks = {"a": self.x > 0}

        self.assertEqual("", self.said_of(cache))

        def resets() -> None:
            self.apart.reset()
            self.apart.update(self.x)

        self.assertEqual("", self.said_of(resets))


class UnkeptTest(unittest.TestCase):
    """An average that after_step= moves."""

    def said(self, change: Callable[[nn.Linear], Any], **more: Any) -> str:
        model, average = nn.Linear(2, 2), nn.Linear(2, 2)
        kept = Kept()
        kept.keep(model=model, optimizer=torch.optim.SGD(model.parameters(), 0.1),
                  after_step=lambda: None, **{name: make(average) for name, make in more.items()})
        unkept = Unkept(kept)
        unkept.remember()
        with torch.no_grad():
            change(average)
        with mock.patch.object(WAITS, "say") as say:
            unkept.say()
        return say.call_args[0][0] if say.called else ""

    def test_what_after_step_changes_and_nobody_keeps_is_told(self) -> None:
        self.assertRegex(self.said(lambda average: average.weight.lerp_(torch.ones(2, 2), 0.5)),
                         "changes `weight` of a Linear that run.keep.. was not given")
        self.assertEqual("", self.said(lambda average: average(torch.ones(1, 2))))

    def test_what_a_kept_object_has_in_its_state_is_kept(self) -> None:
        self.assertEqual("", self.said(lambda average: average.weight.zero_(), ema=Holder))
        self.assertEqual("", self.said(lambda average: average.weight.zero_(), ema=lambda module: module))


class Holder:
    def __init__(self, module: nn.Module):
        self.module = module

    def state_dict(self) -> dict[str, Any]:
        return self.module.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.module.load_state_dict(state)


class ScalerTest(unittest.TestCase):
    def test_a_scaler_that_scales_and_is_not_kept_is_refused(self) -> None:
        model, idle, scaler = nn.Linear(2, 2), torch.amp.GradScaler("cpu"), torch.amp.GradScaler("cpu")
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        apart, together = Kept(), Kept()
        apart.keep(model=model, optimizer=optimizer)
        refuse_unkept(apart)
        scaler.scale(torch.ones(()))
        with self.assertRaisesRegex(Misuse, r"run.keep\(scaler=…\)"):
            refuse_unkept(apart)
        together.keep(model=model, optimizer=optimizer, scaler=scaler)
        refuse_unkept(together)
        self.assertIsNone(idle._scale)


if __name__ == "__main__":
    unittest.main()
