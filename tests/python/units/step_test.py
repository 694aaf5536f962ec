"""A step's use of its sums, and the values that a slot hands over: equal in every worker, whatever
slots it had and whichever generation it comes from."""

from __future__ import annotations

import unittest
from typing import Any
from unittest import mock

import torch
from torch import nn, optim

from lockstep import _core
from lockstep._ahead import Ahead
from lockstep._buffers import Buffers
from lockstep._core import Memory, Order, Task
from lockstep._errors import Misuse
from lockstep._gradients import Gradients
from lockstep._last import LastStep
from lockstep._phases import Phases
from lockstep._scaler import Scaler
from lockstep._slot import Seen, Slot, SlotParts
from lockstep._state import Kept, MisuseError
from lockstep._step import Step


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(3, 2))
        self.norm = nn.BatchNorm1d(2, affine=False)
        self.register_buffer("steady", torch.zeros(2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(x @ self.weight).square().mean()


class World:
    """A kept model whose trial is over, and the memory of a step's sums."""

    def __init__(self, of_optimizer: Any = lambda _: {}, **objects: Any) -> None:
        torch.manual_seed(1)
        self.model = Model()
        self.optimizer = optim.SGD(self.model.parameters(), 0.5)
        objects |= of_optimizer(self.optimizer)
        self.kept = Kept()
        self.kept.keep(model=self.model, optimizer=self.optimizer, **objects)
        self.kept.guard()
        self.gradients = Gradients(self.kept.parameters)
        self.buffers = Buffers(self.kept.buffers)
        self.compute()
        self.buffers.settle()
        self.buffers.restore()
        self.sums = torch.zeros(6)
        self.means = torch.cat([b.get().flatten() for b in self.buffers.statistics])
        self.used = torch.ones(1)
        begins = [0]
        for buffer in self.buffers.statistics[:-1]:
            begins.append(begins[-1] + buffer.get().numel())
        memory = Memory(self.sums.data_ptr(), self.means.data_ptr(), self.used.data_ptr(), [0], begins,
                        6, self.means.numel())
        last = LastStep()
        last.begin((), ((),), False, 10)
        self.step = Step(self.kept, Phases(self.kept), self.gradients, self.buffers, memory, None, last)
        self.number = 0

    def compute(self) -> None:
        """A slot's forward, which moves the statistics."""
        self.model(torch.randn(4, 3))

    def apply(self, seed: int = 7) -> Any:
        order = Order(kind=_core.APPLY, step=self.number, task=Task(step=self.number, seed=seed))
        self.number += 1
        return self.step.answer(order)


class ApplyTest(unittest.TestCase):
    def test_the_script_finds_the_buffers_of_the_step_before(self) -> None:
        """A worker with slots finds the same buffers as a worker without slots."""
        seen: list[list[float]] = []
        world = World(after_step=lambda: None,
                      update=lambda: seen.append(world.model.norm.running_mean.tolist()))
        world.compute()
        self.assertNotEqual([0.0, 0.0], world.model.norm.running_mean.tolist())
        world.apply()
        self.assertEqual([[0.0, 0.0]], seen)

    def test_the_script_draws_by_the_step_and_not_by_what_slots_drew(self) -> None:
        drawn: list[float] = []
        world = World(after_step=lambda: drawn.append(float(torch.rand(()))))
        for slots in (0, 3):
            for _ in range(slots):
                world.compute()
            world.apply(seed=5)
        self.assertEqual(drawn[0], drawn[1])
        world.apply(seed=6)
        self.assertNotEqual(drawn[0], drawn[2])

    def test_a_step_that_overflows_halves_the_scale_and_changes_nothing_else(self) -> None:
        scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
        world = World(scaler=scaler)
        for bad, scale in ((float("inf"), 512.0), (float("nan"), 256.0)):
            world.sums.fill_(bad)
            before = world.model.weight.detach().clone()
            reply = world.apply()
            self.assertTrue(reply.skipped)
            self.assertEqual(scale, scaler.get_scale())
            self.assertTrue(torch.equal(before, world.model.weight))
        world.sums.fill_(256.0)
        self.assertFalse(world.apply().skipped)
        self.assertTrue(torch.equal(before - 0.5, world.model.weight), "unscaled")

    def test_after_an_overflow_neither_the_scheduler_nor_the_script_nor_a_norm_has_moved(self) -> None:
        called: list[int] = []
        world = World(lambda o: {"scheduler": optim.lr_scheduler.StepLR(o, 1, 0.5)},
                      scaler=torch.amp.GradScaler("cpu"), after_step=lambda: called.append(1))
        world.means.fill_(3.0)
        world.sums.fill_(float("inf"))
        self.assertTrue(world.apply().skipped)
        self.assertEqual((0.5, [], [0.0, 0.0]), (world.optimizer.param_groups[0]["lr"], called,
                                                 world.model.norm.running_mean.tolist()))
        world.sums.fill_(1.0)
        world.apply()
        self.assertEqual((0.25, [1], [3.0, 3.0]), (world.optimizer.param_groups[0]["lr"], called,
                                                   world.model.norm.running_mean.tolist()))

    def test_a_parameter_that_no_slot_used_is_left_alone(self) -> None:
        """A zero gradient would decay it, and move the optimizer's state for it."""
        world = World()
        world.optimizer.param_groups[0]["weight_decay"] = 0.5
        world.kept.guard().note()
        world.used.zero_()
        world.apply()
        self.assertEqual(6.0, float(world.model.weight.sum()))

    def test_a_scaler_has_nothing_to_do_where_no_slot_made_a_gradient(self) -> None:
        scaler = torch.amp.GradScaler("cpu", init_scale=1024.0, growth_interval=1)
        world = World(scaler=scaler)
        world.used.zero_()
        self.assertFalse(world.apply().skipped)
        self.assertEqual((6.0, 1024.0), (float(world.model.weight.sum()), scaler.get_scale()))

    def test_a_state_has_nothing_of_a_slot_that_was_broken_off(self) -> None:
        world = World()
        world.compute()
        world.step.answer(Order(kind=_core.STATE))
        self.assertEqual([0.0, 0.0], world.model.norm.running_mean.tolist())


class EdgeTest(unittest.TestCase):
    def edge(self, world: World, code: Any, seed: int = 7) -> None:
        world.step.begin_edge(Order(kind=_core.EDGE, task=Task(seed=seed)))
        code()
        world.step.end_edge()

    def test_the_code_between_two_epochs_finds_the_same_in_every_worker(self) -> None:
        found: list[list[float]] = []
        for slots in (0, 3):
            world = World()
            for _ in range(slots):
                world.compute()
            self.edge(world, lambda: found.append([float(torch.rand(())),
                                                   *world.model.norm.running_mean.tolist()]))
        self.assertEqual(found[0], found[1])

    def test_what_it_leaves_in_a_buffer_is_what_slots_begin_with(self) -> None:
        world = World()
        self.edge(world, lambda: world.model.norm.running_mean.fill_(4.0))
        world.compute()
        world.buffers.restore()
        self.assertEqual([4.0, 4.0], world.model.norm.running_mean.tolist())

    def test_it_may_not_change_of_what_the_state_consists(self) -> None:
        world = World()
        with self.assertRaisesRegex(MisuseError, "groups of parameters"):
            self.edge(world, world.optimizer.param_groups.clear)


class SlotTest(unittest.TestCase):
    def test_a_slot_that_changes_another_buffer_hands_nothing_over(self) -> None:
        world, core = World(), mock.Mock()
        core.backward_begins.return_value = True
        parts = SlotParts(core, world.gradients, world.buffers, Scaler.of(world.kept),
                          Phases(world.kept), (Seen((), (), False),), ())
        task = Task(begin=0, end=4, step_samples=4)

        def slot() -> Slot:
            world.buffers.restore()
            found = Slot(parts, task)
            found.backward(world.model(torch.randn(4, 3)), None, None)
            return found

        slot().finish()
        core.take_statistic.assert_called()
        core.take_statistic.reset_mock()
        core.backward_begins.return_value = False  # its generation is over
        slot().finish()
        core.take_statistic.assert_not_called()
        core.backward_begins.return_value = True
        wrong = slot()
        world.model.steady.add_(1)
        with self.assertRaisesRegex(Misuse, "the buffer steady"):
            wrong.finish()
        core.take_statistic.assert_not_called()


class AheadTest(unittest.TestCase):
    def test_batches_of_an_older_generation_are_forgotten(self) -> None:
        """Otherwise a worker that has other slots now would wait for room that never becomes
        free."""
        core, feed = mock.Mock(), mock.Mock()
        core.indices.side_effect = lambda task: [task.begin]
        plan = [Task(step=1, slot=slot, begin=slot, end=slot + 1) for slot in range(4)]
        ahead = Ahead(core, feed, 2)
        core.upcoming.return_value = plan[:2]
        ahead.ask(1)
        feed.forget.reset_mock()
        core.upcoming.return_value = plan[2:]
        ahead.ask(2)
        core.upcoming.assert_called_with(2)  # there is room for two again
        forgotten = feed.forget.call_args.args[0]
        asked = [call.args[0] for call in feed.request.call_args_list]
        self.assertEqual([True, True, False, False], [forgotten(task) for task in asked])
        feed.forget.reset_mock()
        core.upcoming.return_value = []
        ahead.ask(2)
        feed.forget.assert_not_called()


if __name__ == "__main__":
    unittest.main()
