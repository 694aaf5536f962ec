"""The loop's body in a slot, and the parts of its results that the core gets."""

from __future__ import annotations

import os
import random
import unittest
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy
import torch
from torch import nn, optim

from lockstep._buffers import Buffers
from lockstep._core import DTYPES, Task
from lockstep._errors import Misuse
from lockstep._gradients import Gradients
from lockstep._phases import Phases
from lockstep._run import Run
from lockstep._seeds import fold
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
        self.parts = self.parts._replace(way=SimpleNamespace(
            begin=lambda: None, finish=lambda: None,
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
        with self.assertRaisesRegex(Misuse, "call run.backward"):
            self.loss().backward()

    def test_a_backward_that_fails_leaves_no_slot_to_go_on_with(self) -> None:
        slot, loss = self.slot(), self.loss()
        loss.register_hook(lambda _: 1 / 0)
        with self.assertRaises(ZeroDivisionError):
            slot.backward(loss, 3, {"m": 5})
        with self.assertRaisesRegex(Misuse, "failed in this slot, and the loop's body went on"):
            slot.finish()

    def test_a_device_forgets_a_broken_slot_before_and_has_sent_all_behind_backward(self) -> None:
        staging = mock.Mock()
        self.parts = self.parts._replace(way=staging)
        self.slot().backward(self.loss(), 3, {"m": 5})
        self.assertEqual(["begin", "send", "finish"], [name for name, *_ in staging.method_calls])

    def test_a_gradient_is_taken_with_its_own_type(self) -> None:
        self.weight.bfloat16()
        self.parts = self.parts._replace(way=None)
        self.slot().backward(self.weight(torch.ones(1, 2).bfloat16()).sum(), 3, {"m": 5})
        (index, _, dtype, elements), = (call.args for call in self.core.take.call_args_list)
        self.assertEqual((0, "bfloat16", 2), (index, DTYPES[dtype], elements))

    def test_what_is_no_loss_or_no_count_is_refused(self) -> None:
        for loss, count, says in ((self.loss().detach(), 3, "does not depend on any parameter"),
                                  (self.loss().expand(2), 3, "a tensor of .2,."), (1.0, 3, "given float"),
                                  *((self.loss(), count, "from 0 up") for count in (-1, 1.5, 1 << 32)),
                                  ({"optimizer": self.loss()}, 3, "losses for .'optimizer'., and")):
            with self.assertRaisesRegex(Misuse, says):
                self.slot().backward(loss, count, {"m": 5})


def bits_of_torch_and_numpy() -> tuple[int, int]:
    """24 bits of the next draw of each. Their generators are alike, so one seed gives equal
    bits."""
    return int(torch.rand(()) * (1 << 24)), int(numpy.random.randint(1 << 32, dtype="uint32")) & 0xFFFFFF


class BodyTest(unittest.TestCase):
    """Run._slot_of(), which surrounds the body."""

    def run_slot(self, is_check: bool, body: Any = lambda: None, seed: int = 11) -> Any:
        run = Run.__new__(Run)
        run._epochs, run._pid = None, os.getpid()
        run._phases = SimpleNamespace(yielded=lambda turn, batch: batch)
        for name in ("_core", "_kept", "_parts", "_settings"):
            setattr(run, name, mock.MagicMock())
        run._core.is_check.return_value = is_check
        with mock.patch("lockstep._run.Slot"):
            for _ in run._slot_of(mock.Mock(), Task(step=4, epoch=2, seed=seed)):
                body()
        return run

    def test_what_a_body_draws_is_its_slots(self) -> None:
        def draw() -> list[float]:
            return [float(torch.rand((), dtype=torch.double)), numpy.random.rand(), random.random()]
        drawn: list[list[float]] = []
        for seed in (11, 11, 12):
            self.run_slot(False, lambda: drawn.append(draw()), seed)
            draw()
        self.assertEqual(drawn[0], drawn[1])
        self.assertEqual(6, len({*drawn[0], *drawn[2]}), drawn)
        self.run_slot(False, lambda: self.assertNotEqual(*bits_of_torch_and_numpy()))

    def test_a_check_looks_at_every_bit_that_the_body_may_have_written(self) -> None:
        for is_check in (False, True):
            run = self.run_slot(is_check)
            for looks in (run._kept.remember, run._kept.check_same, run._parts.buffers.remember):
                self.assertEqual(is_check, looks.called)
            run._kept.check_body.assert_called()
            self.assertEqual((4, 2), (run.step, run.epoch))

    def test_all_bits_of_a_run_s_seed_count(self) -> None:
        self.assertEqual(4, len({fold(seed) for seed in (0, 1, 2 << 32, 1 << 63)}))

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
