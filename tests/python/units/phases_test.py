"""Several updates on one batch: what belongs to a phase, what its slots change, and the batch it holds."""

from __future__ import annotations

import unittest
from typing import Any, NamedTuple
from unittest import mock

import numpy
import torch
from torch import nn, optim

from lockstep import _core
from lockstep._ahead import Ahead
from lockstep._buffers import Buffers
from lockstep._core import Memory, Order, Task
from lockstep._errors import Misuse
from lockstep._gradients import Gradients
from lockstep._last import Last, LastStep
from lockstep._phases import Phases
from lockstep._slot import Seen, Slot, SlotParts
from lockstep._state import Kept
from lockstep._step import Step
from lockstep._trial import Observed


class Nets:
    """Two networks with an optimizer each; `d` owns indices 2 and 3."""

    def __init__(self) -> None:
        torch.manual_seed(1)
        self.G, self.D = nn.Linear(2, 3), nn.Linear(3, 1)
        self.d, self.g = optim.SGD(self.D.parameters(), 0.5), optim.SGD(self.G.parameters(), 0.25)
        self.scheduler = optim.lr_scheduler.StepLR(self.d, 1, 0.5)
        self.kept = Kept()
        self.kept.keep(G=self.G, D=self.D, d=self.d, g=self.g, scheduler=self.scheduler)
        self.kept.guard()


class PhasesTest(unittest.TestCase):
    def test_a_phase_owns_what_its_optimizer_has(self) -> None:
        nets = Nets()
        names = [p.name for p in nets.kept.parameters]
        phases = Phases(nets.kept, ("d", "g"))
        self.assertEqual(2, phases.count)
        for turn, name in enumerate("DG"):
            owned = phases.owned(turn)
            assert owned is not None
            self.assertEqual({n for n in names if n.startswith(name + ".")}, {names[i] for i in owned})
        self.assertEqual({"g": nets.g}, phases.optimizers(1))
        self.assertEqual(("d", 7), phases.yielded(0, 7))
        self.assertEqual([("batches.phases", "d,g")], phases.identity())
        with self.assertRaisesRegex(Misuse, "no optimizer that run.keep.. was given by that name "
                                            "steps in phase g"):
            phases.owned_by("d", 1)

    def test_a_loop_without_phases_is_one_turn_of_all(self) -> None:
        phases = Phases(Nets().kept)
        self.assertEqual((1, None, [], 7), (phases.count, phases.owned(0), phases.identity(),
                                            phases.yielded(0, 7)))
        self.assertEqual({"d", "g"}, set(phases.optimizers(0)))

    def test_what_is_no_phase_is_named(self) -> None:
        kept = Nets().kept
        for names, what in ((("d", "d"), "once"), ((), "once"), ("dg", "once"),
                            (("d", "G"), "none as G="), (("d",), "the optimizer g would step in none")):
            with self.assertRaisesRegex(Misuse, what):
                Phases(kept, names)


class ApplyTest(unittest.TestCase):
    def setUp(self) -> None:
        self.nets = nets = Nets()
        gradients = Gradients(nets.kept.parameters)
        buffers = Buffers([], 2)
        self.sums, self.used = torch.ones(13), torch.ones(4)
        begins = [0, 6, 9, 12]
        memory = Memory(self.sums.data_ptr(), self.sums.data_ptr(), self.used.data_ptr(), begins, [], 13, 0)
        self.last = LastStep()
        self.last.begin(["a", "b"], [["a"], ["a", "b"]], False, 4)
        self.step = Step(nets.kept, Phases(nets.kept, ("d", "g")), gradients, buffers, memory, None,
                         self.last)

    def apply(self, step: int) -> Any:
        metrics = (_core.ctypes.c_double * 2)(0.5, 0.25)
        return self.step.answer(Order(kind=_core.APPLY, step=step, metrics=metrics,
                                      task=Task(step=step, seed=7, turn=step % 2)))

    def test_each_optimizer_steps_in_its_phase_with_its_scheduler(self) -> None:
        D, G = self.nets.D.weight, self.nets.G.weight
        before, found = (D.detach().clone(), G.detach().clone()), []
        self.nets.g.register_step_pre_hook(lambda *_: found.append(D.grad))
        reply = self.apply(0)
        self.assertTrue(torch.equal(before[0] - 0.5, D))
        self.assertTrue(torch.equal(before[1], G), "its phase comes later")
        self.assertEqual([0.25, 0.25], reply.lrs[:2])
        self.assertEqual({"a": 0.5}, self.last.value.metrics)
        after = D.detach().clone()
        reply = self.apply(1)
        self.assertTrue(torch.equal(before[1] - 0.25, G))
        self.assertTrue(torch.equal(after, D))
        self.assertEqual([None], found, "a norm of gradients would count them")
        self.assertEqual([0.25, 0.25], reply.lrs[:2], "the scheduler is of the other optimizer")
        self.assertEqual({"a": 0.5, "b": 0.25}, self.last.value.metrics)


class EndTest(unittest.TestCase):
    def test_an_end_waits_for_the_batch_also_in_the_state(self) -> None:
        last = LastStep()
        last.value = Last(1, 0.5, {}, None)
        self.assertFalse(last.ends(True, is_last_turn=False))
        joined = LastStep()
        joined.load_state_dict(last.state_dict())
        for each in (last, joined):
            self.assertTrue(each.ends(False, is_last_turn=True))
            self.assertNotIn("ends", each.state_dict())
            self.assertFalse(each.ends(False, is_last_turn=True))
        self.assertTrue(last.ends(True, is_last_turn=True))
        last.ends(True, is_last_turn=False)
        last.load_state_dict(joined.state_dict())
        self.assertFalse(last.ends(False, is_last_turn=True), "the state is one of another batch")


class SlotTest(unittest.TestCase):
    def setUp(self) -> None:
        self.nets = Nets()
        self.gradients = Gradients(self.nets.kept.parameters)

    def slot(self, names: tuple[str, ...] | None, turn: int) -> tuple[Slot, Observed]:
        phases = Phases(self.nets.kept, names)
        parts = SlotParts(mock.Mock(), self.gradients, Buffers([], phases.count), None, phases, None, ())
        observed = Observed()
        return Slot(parts, Task(begin=0, end=4, step_samples=4, turn=turn), observed), observed

    def loss(self) -> torch.Tensor:
        return self.nets.D(self.nets.G(torch.ones(4, 2))).mean()

    def test_a_phase_takes_the_gradients_of_its_own(self) -> None:
        names = [p.name for p in self.nets.kept.parameters]
        for turn, net in enumerate("DG"):
            slot, observed = self.slot(("d", "g"), turn)
            slot.backward(self.loss(), None, {})
            self.assertEqual({n for n in names if n[0] == net}, {names[i] for i in observed.takes})

    def test_each_of_several_losses_trains_its_own(self) -> None:
        slot, observed = self.slot(None, 0)
        loss = self.loss()
        slot.backward({"d": loss, "g": 10 * loss}, None, {})
        self.assertEqual({1}, set(observed.takes.values()))
        self.assertEqual(Seen((), ("d", "g"), False), observed.seen)
        alone, apart = self.slot(None, 0)
        alone.backward(self.loss(), None, {})
        for i, p in enumerate(self.nets.kept.parameters):
            wanted = apart.gradients[i] * (10 if p.name.startswith("G.") else 1)
            torch.testing.assert_close(wanted, observed.gradients[i])
        self.assertAlmostEqual(11 * float(loss.detach()), observed.loss, places=5)

    def test_a_loss_for_nobody_is_named(self) -> None:
        for losses, what in (({"x": self.loss()}, "loss for 'x'"), ({}, "no loss")):
            with self.assertRaisesRegex(Misuse, what):
                self.slot(None, 0)[0].backward(losses, None, {})


class BuffersTest(unittest.TestCase):
    """One norm moves in turn 0 only, the other in both."""

    def setUp(self) -> None:
        self.a, self.b = nn.BatchNorm1d(2, affine=False), nn.BatchNorm1d(2, affine=False)
        kept = Kept()
        model = nn.Module()
        model.a, model.b, model.w = self.a, self.b, nn.Parameter(torch.zeros(1))
        kept.keep(model=model, optimizer=optim.SGD([model.w], 0.1))
        self.buffers = Buffers(kept.buffers, 2)
        for self.buffers.turn in (1, 0):
            self.compute()
            self.buffers.settle()
        self.buffers.restore()

    def compute(self) -> None:
        torch.manual_seed(5)
        if self.buffers.turn == 0:
            self.a(torch.randn(4, 2))
        self.b(torch.randn(4, 2))

    def means(self, off: float) -> list[torch.Tensor]:
        return [b.get().flatten() + off for b in self.buffers.statistics]

    def test_what_a_turn_leaves_alone_stays_as_it_is(self) -> None:
        self.buffers.turn = 1
        self.compute()
        self.buffers.check_unchanged()
        self.buffers.advance(self.means(1e-3))
        self.assertEqual([0.0, 0.0], self.a.running_mean.tolist(), "a mean of equals may be another one")
        self.assertEqual((0, 1), (int(self.a.num_batches_tracked), int(self.b.num_batches_tracked)))
        self.buffers.turn = 0
        self.compute()
        self.buffers.check_unchanged()
        self.buffers.advance(self.means(0))
        self.assertEqual((1, 2), (int(self.a.num_batches_tracked), int(self.b.num_batches_tracked)))
        self.assertNotEqual([0.0, 0.0], self.a.running_mean.tolist())

    def test_a_turn_that_changes_more_than_in_the_trial_is_named(self) -> None:
        self.buffers.turn = 1
        self.compute()
        self.a(torch.randn(4, 2))
        with self.assertRaisesRegex(Misuse, "the buffer a.running_mean"):
            self.buffers.check_unchanged()


class Pair(NamedTuple):
    x: torch.Tensor
    names: list[str]


class AheadTest(unittest.TestCase):
    def setUp(self) -> None:
        self.core, self.feed = mock.Mock(), mock.Mock()
        self.core.indices.side_effect = lambda task: [task.begin]
        self.value: Any = Pair(torch.zeros(2), ["a"])
        self.feed.take.side_effect = lambda task: mock.Mock(indices=[task.slot], value=self.value)
        self.ahead = Ahead(self.core, self.feed, 4, None, 2)

    @staticmethod
    def task(step: int, slot: int) -> Task:
        return Task(step=step, slot=slot, begin=slot, end=slot + 1, turn=step % 2)

    def take(self, step: int, slot: int) -> Any:
        return self.ahead.take(self.task(step, slot), is_trial=False)

    def test_a_batch_is_read_once_and_each_turn_has_its_own_copy(self) -> None:
        tasks = [self.task(step, slot) for step in (0, 1) for slot in (0, 1)]
        self.core.upcoming.side_effect = [tasks, []]
        self.ahead.ask(1)
        self.assertEqual(2, self.feed.request.call_count)
        for slot in (0, 1):
            self.take(0, slot).x.fill_(7)
        self.core.upcoming.side_effect = [[]]
        self.ahead.ask(1)
        for slot in (0, 1):
            self.assertEqual([0, 0], self.take(1, slot).x.tolist(), "what a phase wrote is its own")
        self.assertEqual(2, self.feed.take.call_count)
        self.core.has_samples.assert_called_with([1])

    def test_a_generation_that_begins_between_two_turns_reads_again(self) -> None:
        self.core.upcoming.side_effect = [[self.task(0, 0), self.task(1, 0)], []]
        self.ahead.ask(1)
        self.take(0, 0)
        self.core.upcoming.side_effect = [[self.task(1, 0)], []]
        self.ahead.ask(2)
        self.take(1, 0)
        self.assertEqual(2, self.feed.take.call_count)

    def test_copies_share_nothing_that_can_be_changed(self) -> None:
        self.value = {"x": torch.arange(4).reshape(2, 2).t(), "n": numpy.zeros(1), "b": bytearray(b"b"),
                      "more": [Pair(torch.ones(1), ["a"]), (1, None)]}
        self.core.upcoming.side_effect = [[self.task(0, 0), self.task(1, 0)], []]
        self.ahead.ask(1)
        copy = self.take(0, 0)
        self.assertEqual(self.value["x"].stride(), copy["x"].stride())
        copy["x"].zero_()
        copy["n"][0] = 1
        copy["b"][0] = 1
        copy["more"][0].names.append("b")
        later = self.take(1, 0)
        self.assertEqual([[0, 2], [1, 3]], later["x"].tolist())
        self.assertEqual(([0.0], b"b", ["a"]), (later["n"].tolist(), bytes(later["b"]),
                                                later["more"][0].names))


if __name__ == "__main__":
    unittest.main()
