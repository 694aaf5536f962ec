"""A script's whole loop: the state after each order, and the answer to it."""

from __future__ import annotations

import unittest
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import torch
from torch import nn, optim
from torch.nn.functional import linear

from lockstep import Misuse, _core
from lockstep._ahead import Ahead
from lockstep._core import Order
from lockstep._run import Run

from loop_world import BATCH, DATA, Core, Model, Script, alone, running, steps, whole


class StepsTest(unittest.TestCase):
    def test_each_step_trains_with_its_own_gradients_alone(self) -> None:
        script = Script()
        script.model.weight.grad = torch.full((1, 2), 9.0)  # of a backward before the loop
        script.train(steps(0, 1))
        expected = alone(Script(), 2)
        self.assertEqual(expected.model.weight.tolist(), script.model.weight.tolist())
        self.assertEqual(expected.model.bias.tolist(), script.model.bias.tolist())

    def test_a_parameter_of_any_order_in_memory_gets_its_own_gradient(self) -> None:
        def script_of(weight: torch.Tensor) -> Script:
            model = nn.Linear(2, 3, bias=False)
            model.weight = nn.Parameter(weight)
            model.register_forward_hook(lambda _, x, y: y * torch.tensor([1.0, 2.0, 4.0]))
            return Script(model)
        expected = alone(script_of(torch.zeros(3, 2)), 1).model.weight
        for weight in (torch.zeros(2, 3).t(), torch.zeros(3, 4)[:, ::2]):
            script = script_of(weight)
            script.train(steps(0))
            torch.testing.assert_close(expected, script.model.weight)

    def test_a_model_of_bfloat16_trains_with_sums_of_its_gradients(self) -> None:
        script = Script(nn.Linear(2, 1, bias=False).bfloat16())
        script.body = lambda x: script.run.backward(script.model(x.bfloat16()).mean())
        before = script.model.weight.detach().clone()
        script.train(steps(0))
        self.assertEqual((before - 0.5 * torch.tensor([[1.5, 1.0]]).bfloat16()).tolist(),
                         script.model.weight.tolist())

    def test_what_is_frozen_between_two_steps_rests_until_it_is_not(self) -> None:
        """A parameter that is frozen when the loop begins rests, too. Momentum would move both."""
        def freeze(model: Any, step: int) -> None:
            model.weight.requires_grad_(step % 2 == 1)
            model.bias.requires_grad_(step != 1)

        script = Script(after_step=lambda: freeze(script.model, script.run.step))
        plain = Script()
        for step in range(3):
            freeze(plain.model, step)
            plain.optimizer.zero_grad()
            plain.model(torch.stack(DATA[BATCH * step:BATCH * (step + 1)])).mean().backward()
            plain.optimizer.step()
        begin = Run.batches
        with mock.patch.object(Run, "batches", lambda run, data: (freeze(script.model, 0),
                                                                  begin(run, data))[1]):
            script.train(steps(0, 1, 2))
        for mine, expected in zip(script.model.parameters(), plain.model.parameters()):
            torch.testing.assert_close(mine, expected, rtol=0, atol=1e-6)
        self.assertEqual([True, True], [bool((p != q).any()) for p, q in zip(
            plain.model.parameters(), Script().model.parameters())])

    def test_each_slot_of_a_step_begins_with_the_buffers_of_the_step_before(self) -> None:
        """In after_step= the script finds, and may change, the buffers of the next step's slots."""
        script = Script(after_step=lambda: after())
        mean = script.model.norm.running_mean

        def after() -> None:
            self.assertNotIn(mean.tolist(), script.seen, "the step's own are there")
            mean.fill_(4.0 + script.run.step)

        def body(x: torch.Tensor) -> None:
            script.see(mean.tolist())
            Script.body(script, x)
        script.body = body
        script.train(steps(0, 1))
        self.assertEqual([[0.0, 0.0], [0.0, 0.0], [5.0, 5.0], [5.0, 5.0]], script.seen)

    def test_update_may_change_a_buffer_that_no_slot_changes(self) -> None:
        script = Script(update=lambda: script.model.steady.add_(1))
        script.model.register_buffer("steady", torch.zeros(1))
        script.train(steps(0, 1))
        self.assertEqual(2.0, float(script.model.steady))

    def test_no_code_of_a_step_may_change_of_what_the_state_consists(self) -> None:
        for name in ("update", "after_step"):
            script = Script(**{name: lambda: script.optimizer.param_groups[0]["params"].reverse()})
            with self.assertRaisesRegex(Misuse, "groups of parameters"):
                script.train(steps(0))

    def test_every_slot_of_a_buffer_by_rule_counts_once(self) -> None:
        script = Script(buffers={"seen": "sum"})
        script.model.register_buffer("seen", torch.tensor(0))

        def body(x: torch.Tensor) -> None:
            script.model.seen += len(x)
            Script.body(script, x)
        script.body = body
        core = script.train(steps(0, 1))
        self.assertEqual(2 * BATCH, int(script.model.seen))
        self.assertEqual("seen: sum", core.identity["keep.buffers"])

    def test_the_slots_of_each_step_are_asked_for_ahead_and_checked_by_its_number(self) -> None:
        with mock.patch.object(Ahead, "ask") as ask:
            core = Script().train(steps(0, 1))
        self.assertEqual([mock.call(1)] * 4, ask.call_args_list)
        self.assertEqual([1, 1, 2, 2], core.asked_to_check)
        self.assertEqual([[0, 1], [2, 3], [4, 5], [6, 7]], core.told)

    def test_after_the_loop_the_script_computes_as_it_likes(self) -> None:
        script = Script()
        script.train(steps(0))
        script.model(torch.stack(DATA)).mean().backward()
        self.assertAlmostEqual(1.0, float(script.model.bias.grad), 5)
        script.optimizer.step()


class SettingsTest(unittest.TestCase):
    def test_a_setting_that_changes_in_a_slot_or_in_a_step_ends_the_run(self) -> None:
        def change() -> None:
            torch.set_default_dtype(torch.float64)

        def body(x: torch.Tensor) -> None:
            Script.body(in_slot, x)
            change()
        in_slot, in_step = Script(), Script(after_step=change)
        in_slot.body = body
        for script, orders in ((in_slot, steps()), (in_step, steps(0))):  # a slot of the trial, too
            try:
                with self.assertRaisesRegex(Misuse, "the loop changed torch.set_default_dtype"):
                    script.train(orders)
            finally:
                torch.set_default_dtype(torch.float32)


class GradientsTest(unittest.TestCase):
    """Norms and scales of the sums of a step."""

    def test_the_norm_is_that_of_all_parameters(self) -> None:
        script = Script(clip_norm=0.25)
        script.train(steps(0))
        expected = alone(Script(), 1, lambda s: nn.utils.clip_grad_norm_(s.model.parameters(), 0.25))
        self.assertEqual(expected.model.weight.tolist(), script.model.weight.tolist())
        self.assertEqual(expected.model.bias.tolist(), script.model.bias.tolist())

    def test_a_scaler_scales_what_is_computed_and_neither_norm_nor_weights(self) -> None:
        scaler = torch.amp.GradScaler("cpu", init_scale=1024.0, growth_interval=1)
        script, plain = Script(scaler=scaler, clip_norm=0.25), Script(clip_norm=0.25)
        taken: list[list[float]] = []

        def orders(core: Core) -> Iterator[Order]:
            yield core.slot(0, 0)
            yield core.slot(0, 1)
            taken.append(core.sums.tolist())
            yield core.apply(0)
            yield core.end()
        for each in (script, plain):
            each.train(orders)
        self.assertEqual(taken[0], [1024 * x for x in taken[1]])
        self.assertEqual(plain.model.weight.tolist(), script.model.weight.tolist())
        self.assertEqual(2048.0, scaler.get_scale(), "it grows with each step that counts")

    def test_an_overflow_of_one_optimizer_stops_all(self) -> None:
        model = Model()
        script = Script(model, scaler=torch.amp.GradScaler("cpu"))
        script.optimizer = optim.SGD([model.weight], 0.5)
        script.keeps["other"] = optim.SGD([model.bias], 0.5)

        def orders(core: Core) -> Iterator[Order]:
            yield core.slot(0, 0)
            core.sums[-1] = float("inf")
            yield core.apply(0)
            yield core.end()
        script.train(orders)
        self.assertEqual(([[1.0, 1.0]], [0.0]), (model.weight.tolist(), model.bias.tolist()))

    def test_update_stands_for_clipping_and_the_optimizer(self) -> None:
        script = Script(clip_norm=0.25)
        script.keeps["update"] = lambda: grads.append(script.model.weight.grad.tolist())
        grads: list[Any] = []
        script.train(steps(0))
        self.assertEqual([[[1.5, 1.0]]], grads)
        self.assertEqual([[1.0, 1.0]], script.model.weight.tolist())


class CastsTest(unittest.TestCase):
    """The loop runs within an autocast, in which torch keeps the casts of weights."""

    def body(self, script: Script) -> Callable[[torch.Tensor], None]:
        def compute(x: torch.Tensor) -> None:
            y = script.model(x)
            parts = [p.detach().clone().bfloat16() for p in (script.model.weight, script.model.bias)]
            self.assertEqual(linear(x.bfloat16(), *parts).tolist(), y.tolist())
            script.see(len(x))
            script.run.backward(y.mean())
        return compute

    def test_a_slot_computes_with_casts_of_the_weights_that_there_are(self) -> None:
        def after() -> None:
            """Here a worker that had no slot of the step has no casts."""
            parts = script.model.weight, script.model.bias
            cast = linear(torch.ones(1, 2).bfloat16(), *[p.detach().clone().bfloat16() for p in parts])
            self.assertEqual(float(cast), float(linear(torch.ones(1, 2), *parts).detach()))

        script, source = Script(after_step=after), Script(Model(3.0))
        script.body = self.body(script)
        source.train(steps())

        def orders(core: Core) -> Iterator[Order]:
            yield from whole(core, 0)
            yield core.slot(1, 0)
            yield core.install(source.run._kept.describe(), 2)
            yield core.slot(2, 0)
            yield core.end()
        with torch.autocast("cpu", torch.bfloat16):
            script.train(orders)
        self.assertEqual(4, len(script.seen))

    def test_the_code_of_a_step_leaves_none_of_the_weights_before(self) -> None:
        def update() -> None:
            linear(torch.ones(1, 2), script.model.weight, script.model.bias)
            script.optimizer.step()

        def orders(core: Core) -> Iterator[Order]:
            yield from whole(core, 0)
            yield core.slot(1, 0)
            yield core.end()
        script = Script(update=update)
        script.body = self.body(script)
        with torch.autocast("cpu", torch.bfloat16):
            script.train(orders)
        self.assertEqual(3, len(script.seen))

    def test_an_evaluation_leaves_no_cast_of_the_weights_that_it_puts_in(self) -> None:
        script = Script()
        script.body = self.body(script)

        def score(places: Any) -> torch.Tensor:
            before = script.model.weight.clone()
            script.model.weight.fill_(7.0)
            found = script.model(torch.stack(DATA[:4])).mean()
            script.model.weight.copy_(before)
            return found

        def orders(core: Core) -> Iterator[Order]:
            yield core.evaluate(0)
            yield core.slot(0, 0)
            yield core.end()
        with torch.autocast("cpu", torch.bfloat16), running(orders) as (script.run, _):
            script.run.keep(model=script.model, optimizer=script.optimizer)
            script.run.evaluate(score, 4)
            for x in script.run.batches(DATA):
                script.body(x)
        self.assertEqual(1, len(script.seen))

    def test_the_code_between_two_epochs_finds_and_leaves_none(self) -> None:
        script = Script()
        script.body = self.body(script)

        def orders(core: Core) -> Iterator[Order]:
            yield core.slot(3, 0)  # broken off
            yield core.edge(3)
            yield core.slot(3, 0)
            yield core.edge(6, is_last=True)
            yield core.end()
        with torch.autocast("cpu", torch.bfloat16), running(orders) as (script.run, _):
            script.run.keep(model=script.model, optimizer=script.optimizer)
            for _ in script.run.epochs():
                for x in script.run.batches(DATA):
                    script.body(x)
                with torch.no_grad():
                    script.model.weight.fill_(4.0)
                found = linear(torch.ones(1, 2), script.model.weight)
                self.assertEqual(8.0, float(found))
                with torch.no_grad():
                    script.model.weight.fill_(5.0)
        self.assertEqual(2, len(script.seen))


class InstallTest(unittest.TestCase):
    def script(self, weight: float) -> Script:
        script = Script(Model(weight))
        script.keeps["scheduler"] = optim.lr_scheduler.StepLR(script.optimizer, 1, 0.5)
        return script

    def test_a_process_goes_on_with_the_state_that_it_gets_and_nothing_of_its_own(self) -> None:
        first, other = self.script(1.0), self.script(9.0)
        states: list[Any] = []

        def whole_run(core: Core) -> Iterator[Order]:
            yield from whole(core, 0)
            yield from whole(core, 1)
            states.append((first.run.last, [(e, e.tensor.clone()) for e in first.run._kept.describe()]))
            yield from whole(core, 2)
            yield core.end()
        first.train(whole_run)
        last, entries = states[0]
        for entry, tensor in entries:
            object.__setattr__(entry, "tensor", tensor)

        def joins(core: Core) -> Iterator[Order]:
            yield from whole(core, 0)
            yield core.slot(1, 0)  # broken off
            for floats in (core.sums, core.means, core.used):
                floats.zero_()
            core.slots_summed = 0
            yield core.install([entry for entry, _ in entries], 2)
            self.assertEqual((2, last), (other.run.step, other.run.last))
            yield from whole(core, 2)
            yield core.end()
        core = other.train(joins)
        self.assertEqual([0.125], next(r for r in core.replies if r.kind == _core.INSTALL).lrs)
        self.assertEqual(first.bits(), other.bits())

    def test_a_state_that_does_not_fit_or_cannot_be_described_is_answered_and_not_raised(self) -> None:
        class Odd:
            def state_dict(self) -> Any:
                return {"value": value}

            def load_state_dict(self, state: Any) -> None:
                pass
        value: Any = 1
        script, source = Script(odd=Odd()), Script()
        source.train(steps())

        def orders(core: Core) -> Iterator[Order]:
            nonlocal value
            yield core.install(source.run._kept.describe(), 0)
            value = print
            yield core.state(0)
            yield core.end()
        for reply, text in zip(script.train(orders).replies, (b"odd=", b"odd.value: a function")):
            self.assertEqual(65, reply.code)
            self.assertIn(text, reply.text)


class FinishTest(unittest.TestCase):
    def ends(self, core: Core) -> list[tuple[int, bool]]:
        return [(reply.kind, reply.ends_run) for reply in core.replies]

    def test_a_slot_and_a_step_say_each_for_itself_that_the_run_ends(self) -> None:
        script = Script(after_step=lambda: script.run.step == 2 and script.run.finish())

        def body(x: torch.Tensor) -> None:
            Script.body(script, x)
            if float(x[0, 0]) == 2:  # the second slot of the first step
                script.run.finish()
        script.body = body
        slot, apply = _core.SLOT, _core.APPLY
        self.assertEqual([(slot, False), (slot, True), (apply, False),
                          (slot, False), (slot, False), (apply, True)], self.ends(script.train(steps(0, 1))))

    def test_a_step_ends_the_run_where_all_its_slots_say_so(self) -> None:
        def orders(core: Core) -> Iterator[Order]:
            yield core.slot(0, 0)
            yield core.apply(0, ends_run=True)
            yield core.end()
        self.assertTrue(Script().train(orders).replies[-1].ends_run)


if __name__ == "__main__":
    unittest.main()
