"""A script's whole loop: its trial and what the run is told when it begins; epochs, evaluations, phases."""

from __future__ import annotations

import unittest
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import nn, optim

from lockstep import LockstepError, Misuse, _core
from lockstep._core import Order

from loop_world import DATA, SAMPLES, Core, Model, Script, running, steps, whole


class TrialTest(unittest.TestCase):
    """The trial's findings, and the run's facts, before it begins."""

    def test_the_fingerprint_has_what_the_trial_computed(self) -> None:
        lines = [set(Script(nn.Sequential(Model(weight), nn.Tanh())).train(steps()).fingerprint)
                 for weight in (0.125, 0.125, 0.25)]
        self.assertEqual(lines[0], lines[1])
        self.assertEqual({"trial"}, {line.partition("=")[0] for line in lines[0] ^ lines[2]})

    def test_the_state_that_is_compared_is_what_the_script_has_made(self) -> None:
        first, same, other = (Script(Model(weight)).train(steps()) for weight in (1.0, 1.0, 2.0))
        self.assertEqual(first.state_hash, same.state_hash)
        self.assertNotEqual(first.state_hash, other.state_hash)
        self.assertEqual("0.5", first.identity["keep.optimizer.param_groups[0]['lr']"])
        with running(steps()) as (run, core):
            script = Script()
            run.keep(model=script.model, optimizer=script.optimizer)
            for x in run.batches(DATA, weights=[1.0] * SAMPLES):
                run.backward(script.model(x).mean(), count=1)
        self.assertIn("batches.weights", core.identity)
        self.assertTrue(core.has_counts)

    def test_nothing_of_it_stays(self) -> None:
        script = Script()
        self.assertEqual([], script.train(steps()).told, "its samples do not count")
        self.assertEqual([0.0, 0.0], script.model.norm.running_mean.tolist())
        self.assertIn(b"run.last", script.bits()["objects"])

    def test_a_gradient_that_comes_not_once_is_told(self) -> None:
        model = Model()
        model.idle = nn.Parameter(torch.zeros(1))
        self.assertEqual({"weight": False, "bias": False, "idle": True},
                         Script(model).train(steps()).late)

    def test_a_buffer_that_slots_change_is_in_the_state_though_no_checkpoint_of_torch_has_it(self) -> None:
        script = Script()
        script.model.register_buffer("power", torch.zeros(2), persistent=False)

        def body(x: torch.Tensor) -> None:
            script.model.power.add_(1)
            Script.body(script, x)
        script.body = body

        def orders(core: Core) -> Iterator[Order]:
            yield core.state(0)
            yield core.end()
        self.assertIn("power", script.train(orders).replies[0].names)

    def test_a_slot_that_comes_out_otherwise_the_second_time_ends_the_run(self) -> None:
        generator = torch.Generator().manual_seed(1)
        noisy, counting = Script(), Script()
        noisy.body = lambda x: noisy.run.backward(
            (noisy.model(x) * torch.rand((), generator=generator)).mean())
        with self.assertRaisesRegex(LockstepError, "computed the same slot twice"):
            noisy.train(steps())
        counting.model.total = torch.zeros(())

        def body(x: torch.Tensor) -> None:
            counting.model.total = counting.model.total + 1
            Script.body(counting, x)
        counting.body = body
        with self.assertRaisesRegex(Misuse, "goes on with .*`total`"):
            counting.train(steps())

    def test_a_buffer_that_depends_on_the_batch_is_one_slots_affair(self) -> None:
        def made() -> Script:
            script = Script()
            script.model.register_buffer("last", torch.zeros(2))

            def body(x: torch.Tensor) -> None:
                script.model.last.copy_(x.mean(0))
                Script.body(script, x)
            script.body = body
            return script
        with self.assertRaisesRegex(Misuse, "a slot changes the buffer last"):
            made().train(steps())
        script = made()

        def orders(core: Core) -> Iterator[Order]:
            for step in (0, 1):
                yield core.slot(step, 0)
                yield core.apply(step)
            yield core.end()
        script.train(orders, slots="1")
        self.assertEqual([5.5, 1.0], script.model.last.tolist())

    def test_the_smallest_slot_of_the_run_is_tried(self) -> None:
        script, sizes = Script(), []

        def body(x: torch.Tensor) -> None:
            sizes.append(len(x))
            script.run.backward(script.model.weight.sum() * x.mean())
        script.body = body
        script.train(steps(), DATA[:9])
        self.assertEqual([2, 2, 1], sizes)
        self.assertEqual(3, script.run.steps_per_epoch)

    def test_a_body_without_backward_is_refused(self) -> None:
        script = Script()
        script.body = lambda x: None
        with self.assertRaisesRegex(Misuse, "ended without run.backward"):
            script.train(steps())


class EpochsTest(unittest.TestCase):
    """The code between two epochs."""

    def train(self, script: Script, between: Callable[[Any], Any]) -> Core:
        def orders(core: Core) -> Iterator[Order]:
            for first in (0, 3):
                for step in range(first, first + 3):
                    yield from whole(core, step)
                yield core.edge(first + 3, is_last=first == 3, loss=0.25 * first)
            yield core.end()
        with running(orders) as (script.run, core):
            script.run.keep(model=script.model, optimizer=script.optimizer, **script.keeps)
            for epoch in script.run.epochs():
                for x in script.run.batches(DATA):
                    script.body(x)
                between(epoch)
        return core

    def test_it_may_change_the_state_and_step_its_own_scheduler(self) -> None:
        script, other = Script(), Script()
        rates: list[float] = []
        script.keeps["own_scheduler"] = optim.lr_scheduler.StepLR(script.optimizer, 1, 0.5)

        def between(epoch: Any) -> None:
            script.model.weight.grad = torch.full((1, 2), 9.0)  # which no step adds to its own
            with torch.no_grad():
                script.model.weight.fill_(3.0)
            script.keeps["own_scheduler"].step()
            rates.append(script.optimizer.param_groups[0]["lr"])
        core = self.train(script, between)
        self.assertEqual("epochs", core.identity["loop"])
        self.assertEqual([0.25, 0.125], rates)
        self.assertEqual([[0.25], [0.125]], [r.lrs for r in core.replies if r.kind == _core.EDGE])
        self.assertEqual([[3.0, 3.0]], script.model.weight.tolist())

        def by_hand(epoch: Any) -> None:
            other.optimizer.param_groups[0]["lr"] /= 2
            with torch.no_grad():
                other.model.weight.fill_(3.0)
        self.train(other, by_hand)
        self.assertEqual(other.bits()["momentum_buffer.weight"], script.bits()["momentum_buffer.weight"])

    def test_the_epoch_is_that_of_the_slot_in_work(self) -> None:
        script, numbers = Script(), []

        def orders(core: Core) -> Iterator[Order]:
            yield core.slot(3, 0)  # this process has joined in the second epoch
            numbers.append(int(epoch))
            yield core.edge(6, is_last=True)
            yield core.end()
        with running(orders) as (script.run, _):
            script.run.keep(model=script.model, optimizer=script.optimizer)
            for epoch in script.run.epochs():
                for x in script.run.batches(DATA):
                    script.body(x)
        self.assertEqual([1], numbers)

    def test_it_knows_the_evaluation_of_its_epoch(self) -> None:
        script, losses = Script(), []
        self.train(script, lambda epoch: losses.append(script.run.last.evaluation.loss))
        self.assertEqual([0.0, 0.75], losses)

    def test_the_run_ends_there_where_it_says_so(self) -> None:
        script = Script()
        core = self.train(script, lambda epoch: epoch == 1 and script.run.finish())
        self.assertEqual([False, True], [r.ends_run for r in core.replies if r.kind == _core.EDGE])

    def test_a_setting_that_it_changes_ends_the_run(self) -> None:
        try:
            with self.assertRaisesRegex(Misuse, "the loop changed torch.set_default_dtype"):
                self.train(Script(), lambda epoch: epoch == 1 and torch.set_default_dtype(torch.float64))
        finally:
            torch.set_default_dtype(torch.float32)


class EvaluationTest(unittest.TestCase):
    def train(self, score: Callable[[Any], Any], script: Script) -> None:
        def orders(core: Core) -> Iterator[Order]:
            yield from whole(core, 0)
            yield core.evaluate(3)
            yield from whole(core, 3)
            yield core.end()
        with running(orders) as (script.run, _):
            script.run.keep(model=script.model, optimizer=script.optimizer)
            script.run.evaluate(score, 4)
            for x in script.run.batches(DATA):
                script.body(x)

    def test_it_may_put_other_weights_in_and_the_right_ones_back(self) -> None:
        script, numbers = Script(), []

        def score(places: Any) -> float:
            numbers.append(script.run.step)
            kept = script.model.weight.clone()
            script.model.weight.fill_(7.0)
            script.model.weight.copy_(kept)
            return 1.0
        self.train(score, script)
        self.assertEqual([0, 0, 3], numbers)

    def test_what_it_leaves_frozen_or_not_is_as_it_was_before(self) -> None:
        """Only workers with a share of it run its function. Before the loop, too, where the trial runs it."""
        script, found = Script(), []

        def body(x: torch.Tensor) -> None:
            found.append((script.model.weight.requires_grad, script.model.bias.requires_grad))
            Script.body(script, x)
        script.body = body

        def score(places: Any) -> float:
            script.model.requires_grad_(False)
            script.model.bias.requires_grad_(True)
            return 1.0
        self.train(score, script)
        self.assertEqual({(True, True)}, set(found))
        self.assertEqual([True, True], [p.requires_grad for p in script.model.parameters()])

    def test_one_that_changes_a_weight_is_refused_in_the_trial(self) -> None:
        script = Script()
        with self.assertRaisesRegex(Misuse, "The evaluation changes the parameter `bias`"):
            self.train(lambda places: float(script.model.bias.fill_(1)), script)
        self.assertEqual([], script.seen)


class PhasesTest(unittest.TestCase):
    """Phase d trains D, whose norm only its slots move; phase g trains G."""

    def setUp(self) -> None:
        self.D, self.G = Model(), nn.Linear(2, 1, bias=False)
        self.objects = {"D": self.D, "G": self.G, "d": optim.SGD(self.D.parameters(), 0.5),
                        "g": optim.SGD(self.G.parameters(), 0.5)}
        self.seen: list[Any] = []

    def body(self, run: Any, phase: str, x: torch.Tensor) -> None:
        if phase == "d":
            run.backward(self.D(x).mean(), metrics={"b": 2.0})
        else:
            run.backward(self.G(x).mean(), metrics={"a": 3.0})

    def train(self, orders: Callable[[Core], Iterator[Order]], **keeps: Any) -> Core:
        with running(orders) as (self.run, core):
            self.run.keep(**self.objects, **keeps)
            for phase, x in self.run.batches(DATA, phases=("d", "g")):
                self.body(self.run, phase, x)
        return core

    def test_each_phase_moves_counts_and_tells_its_own(self) -> None:
        self.objects["g"].register_step_pre_hook(lambda *_: self.seen.append(self.D.weight.grad))
        core = self.train(steps(0, 1, 2, 3), after_step=lambda: self.seen.append(
            (self.run.phase, int(self.D.norm.num_batches_tracked))))
        self.assertEqual([("d", 1), None, ("g", 1), ("d", 2), None, ("g", 2)], self.seen)
        self.assertEqual([("a", 2), ("b", 1)], core.metrics)
        self.assertEqual([[0.0, 2.0]] * 2 + [[3.0, 0.0]] * 2,
                         [r.metrics for r in core.replies if r.kind == _core.SLOT][:4])
        self.assertEqual("d,g", core.identity["batches.phases"])
        self.assertEqual((2, 6, 12), (core.turns, self.run.steps_per_epoch, self.run.total_steps))

    def test_a_worker_without_slots_in_a_phase_applies_that_phase(self) -> None:
        def orders(core: Core) -> Iterator[Order]:
            yield core.slot(0, 0)
            yield core.slot(0, 1)
            yield core.apply(0)
            core.used[-1] = core.sums[-1] = 1
            core.means.fill_(5.0)
            yield core.apply(1)
            yield core.end()
        self.train(orders)
        self.assertEqual(1, int(self.D.norm.num_batches_tracked))
        self.assertNotEqual([5.0, 5.0], self.D.norm.running_mean.tolist())

    def test_a_phase_whose_parameters_are_all_frozen_rests(self) -> None:
        rests: list[Any] = []

        def after() -> None:
            rests.append(self.G.weight.tolist())
            self.G.requires_grad_(not 2 <= self.run.step < 4)
        self.train(steps(0, 1, 2, 3, 4, 5), after_step=after)
        self.assertEqual(rests[1], rests[4], "frozen in the second batch")
        self.assertNotEqual(rests[0], rests[1])
        self.assertNotEqual(rests[4], rests[5])
        self.body = lambda run, phase, x: run.backward(  # type: ignore[method-assign]
            (self.D if phase == "d" else self.G)(x).mean().detach())
        with self.assertRaisesRegex(Misuse, "does not depend on any parameter"):
            self.train(steps(0, 1))

    def test_an_end_waits_for_the_last_phase_of_its_batch(self) -> None:
        core = self.train(steps(0, 1), after_step=lambda: self.run.step == 1 and self.run.finish())
        self.assertEqual([False, True], [r.ends_run for r in core.replies if r.kind == _core.APPLY])

    def test_a_phase_that_uses_what_an_earlier_one_has_computed_fails_in_the_trial(self) -> None:
        def body(run: Any, phase: str, x: torch.Tensor) -> None:
            if phase == "d":
                self.left = self.G(x)
            PhasesTest.body(self, run, phase, self.left.detach().expand(-1, 2) if phase == "g" else x)
        self.body = body  # type: ignore[method-assign]
        with self.assertRaisesRegex(AttributeError, "left"):
            self.train(steps())


if __name__ == "__main__":
    unittest.main()
