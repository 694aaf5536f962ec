"""What the loop's body does in a slot, and what of it the core gets."""

from __future__ import annotations

import os
import unittest
from types import SimpleNamespace
from typing import Any
from unittest import mock

import torch
from torch import nn, optim

from lockstep._buffers import Buffers
from lockstep._core import Task
from lockstep._errors import Misuse
from lockstep._gradients import Gradients
from lockstep._phases import Phases
from lockstep._run import Run
from lockstep._slot import Seen, Slot, SlotParts
from lockstep._state import Kept
from lockstep._trial import Observed, compare, hash_of


class SlotTest(unittest.TestCase):
    def setUp(self) -> None:
        self.weight = nn.Linear(2, 1, bias=False)
        kept = Kept()
        kept.keep(model=self.weight, optimizer=optim.SGD(self.weight.parameters(), 0.1))
        self.gradients = Gradients(kept.parameters)
        self.core = mock.Mock()
        self.core.backward_begins.return_value = True
        self.parts = SlotParts(self.core, self.gradients, Buffers([]), None, Phases(kept),
                               (Seen(("m",), (), True),), ("m",))
        self.taken: list[list[float]] = []
        self.parts = self.parts._replace(staging=SimpleNamespace(
            forget=lambda: None, finish=lambda: None,
            send=lambda index, grad: self.taken.append(grad.flatten().tolist())))

    def slot(self) -> Slot:
        return Slot(self.parts, Task(begin=0, end=3, step_samples=12))

    def loss(self) -> torch.Tensor:
        return self.weight(torch.tensor([[1.0, 2.0]])).sum()

    def test_a_slots_gradient_is_its_share_of_the_step(self) -> None:
        slot = self.slot()
        slot.backward(self.loss(), 3, {"m": 5})
        reply = slot.finish()
        self.assertEqual([[0.25, 0.5]], self.taken)
        self.assertEqual((3, 5.0), (reply.count, reply.metrics[0]))
        self.assertIsNone(self.weight.weight.grad)

    def test_a_slot_that_counts_nothing_has_no_gradient_and_no_loss(self) -> None:
        slot = self.slot()
        slot.backward(self.loss() * float("nan"), 0, {"m": 0})
        self.assertEqual((0.0, 0), (slot.finish().loss, slot._count))
        self.assertEqual([], self.taken)

    def test_a_slot_of_a_generation_that_is_over_hands_nothing_over(self) -> None:
        self.core.backward_begins.return_value = False
        slot = self.slot()
        slot.backward(self.loss(), 3, {"m": 5})
        slot.finish()
        self.assertEqual([], self.taken)

    def test_what_differs_from_the_trial_is_named(self) -> None:
        for count, metrics, says in ((None, {"m": 1}, "count=.* in every slot or in none"),
                                     (3, {"n": 1}, "the metrics .'n'.")):
            with self.assertRaisesRegex(Misuse, says):
                self.slot().backward(self.loss(), count, metrics)

    def test_backward_is_once_and_by_the_run(self) -> None:
        slot = self.slot()
        with self.assertRaisesRegex(Misuse, "call run.backward"):
            self.loss().backward()
        with self.assertRaisesRegex(Misuse, "ended without run.backward"):
            slot.finish()
        slot.backward(self.loss(), 3, {"m": 5})
        with self.assertRaisesRegex(Misuse, "twice in one slot"):
            slot.backward(self.loss(), 3, {"m": 5})


class BodyTest(unittest.TestCase):
    """Run._slot_of(): what is around the body."""

    def run_slot(self, is_check: bool, body: Any = lambda: None) -> Any:
        run = Run.__new__(Run)
        run._epochs, run._pid = None, os.getpid()
        run._phases = SimpleNamespace(yielded=lambda turn, batch: batch)
        for name in ("_core", "_kept", "_parts", "_settings"):
            setattr(run, name, mock.MagicMock())
        run._core.is_check.return_value = is_check
        with mock.patch("lockstep._run.Slot"):
            for _ in run._slot_of(mock.Mock(), Task(step=4, epoch=2, seed=11)):
                body()
        return run

    def test_what_a_body_draws_is_its_slots(self) -> None:
        drawn = []
        for skipped in (0, 3):
            torch.rand(skipped)
            self.run_slot(False, lambda: drawn.append(float(torch.rand(()))))
        self.assertEqual(drawn[0], drawn[1])

    def test_a_check_looks_at_every_bit_that_the_body_may_have_written(self) -> None:
        for is_check in (False, True):
            run = self.run_slot(is_check)
            for looks in (run._kept.remember, run._kept.check_same, run._parts.buffers.remember):
                self.assertEqual(is_check, looks.called)
            run._kept.check_body.assert_called()
            self.assertEqual((4, 2), (run.step, run.epoch))

    def test_a_forked_process_does_not_go_on_with_the_loop(self) -> None:
        with mock.patch("lockstep._run.os.getpid", return_value=os.getpid() + 1):
            with self.assertRaisesRegex(Misuse, "forked"):
                run = Run.__new__(Run)
                run._pid = os.getpid() - 1
                run._check_process()


class ComparedTest(unittest.TestCase):
    def test_a_statistic_or_a_loss_that_comes_out_otherwise_is_seen(self) -> None:
        def observed(statistic: float = 1.0, loss: float = 2.0) -> Observed:
            return Observed(statistics={"mean": torch.tensor([statistic])}, loss=loss)

        compare(observed(), observed(), [])
        for other, says in ((observed(statistic=3.0), "buffer mean"), (observed(loss=3.0), "the loss")):
            with self.assertRaisesRegex(Exception, says):
                compare(observed(), other, [])
            self.assertNotEqual(hash_of([observed()]), hash_of([other]))


if __name__ == "__main__":
    unittest.main()
