"""Buffers by rule: what a step makes of its slots' values, bit for bit, and what is refused by name."""

from __future__ import annotations

import unittest
from typing import Any

import torch
from torch import nn, optim
from torch.ao.quantization import FusedMovingAvgObsFakeQuantize, MinMaxObserver

from lockstep import Misuse
from lockstep._buffers import Buffers, identity_of, rules_of
from lockstep._buffers._joining import Apart, joined
from lockstep._state import Kept

from buffer_steps import SLOTS, Step, kept_of


class RulesTest(unittest.TestCase):
    def test_names_take_the_first_pattern_that_fits(self) -> None:
        other = nn.Module()
        other.register_buffer("peak", torch.zeros(2))
        kept = kept_of(("peak", torch.zeros(2)), ("low", torch.zeros(2)), other=other)
        rules = rules_of({"other.*": "max", "*p*": "sum"}, kept.buffers, SLOTS)
        self.assertEqual({"peak": "sum", "other.peak": "max"}, rules)
        self.assertEqual([("keep.buffers", "other.peak: max, peak: sum")], identity_of(rules))
        self.assertEqual([], identity_of({}))

    def test_what_no_rule_can_join_is_named_with_those_that_can(self) -> None:
        kept = kept_of(("count", torch.zeros(2, dtype=torch.int64)), ("flag", torch.zeros(2) > 0),
                       ("bank", torch.zeros(1 << 22)), ("pair", torch.zeros(2).to_sparse()))
        for given, names in (({"count": "mean"}, "count the rule mean.*sum.*or.*max, min"),
                             ({"flag": "sum"}, "flag the rule sum.*bool.*max"),
                             ({"count": "last"}, "'last'.*sum, max, min and mean"),
                             ({"counts": "sum"}, "'counts'.*there are: count, flag"),
                             ({"bank": "max"}, "bank above all.*fewer slots"),
                             ({"pair": "max"}, "pair.*sparse"),
                             ("sum", "rules by names")):
            with self.assertRaisesRegex(Misuse, names):
                rules_of(given, kept.buffers, SLOTS)


class JoiningTest(unittest.TestCase):
    def test_each_rule(self) -> None:
        before = torch.tensor([5, 10])
        values = [before + torch.tensor(more) for more in ([1, -2], [0, 3], [2, 2])]
        self.assertEqual([8, 13], joined("sum", before, values).tolist())
        self.assertEqual([7, 13], joined("max", before, values).tolist())
        self.assertEqual([5, 8], joined("min", before, values).tolist())
        halves = [value.double() / 2 for value in values]
        self.assertEqual([3.0, 5.5], joined("mean", before.double(), halves).tolist())
        flags = [torch.tensor([True, False]), torch.tensor([False, False])]
        self.assertEqual([True, False], joined("max", torch.tensor([False, False]), flags).tolist())

    def test_whole_numbers_wrap_as_their_dtype_does(self) -> None:
        before = torch.tensor([250], dtype=torch.uint8)
        self.assertEqual([4], joined("sum", before, [before + 5, before + 5]).tolist())
        huge = torch.tensor([(1 << 62) + 1])
        self.assertEqual([(1 << 62) + 3], joined("sum", huge, [huge + 1, huge + 1]).tolist())

    def test_what_no_slot_changes_keeps_its_bits(self) -> None:
        for rule in ("sum", "mean", "max"):
            odd = torch.tensor([0.1, -0.0, float("inf")], dtype=torch.float64)
            self.assertIs(odd, joined(rule, odd, [odd.clone()] * 3))

    def test_any_bits_arrive_through_means_of_floats(self) -> None:
        drawn = torch.Generator().manual_seed(1)
        for slots in (1, 3, 7, 64, 1000):
            tensors = [[torch.randint(-(1 << 62), 1 << 62, (3,), generator=drawn),
                        torch.randint(256, (5, 1), generator=drawn).to(torch.uint8),
                        torch.tensor([float("inf"), float("nan"), -0.0]),
                        torch.randint(2, (), generator=drawn).bool(),
                        torch.full((2,), 0xFFFF).to(torch.int16)] for _ in range(slots)]
            apart = Apart(tensors[0], slots)
            total = torch.zeros(slots, apart.floats // slots)
            for slot, values in enumerate(tensors):
                total += apart.of_slot(slot, values)
            found = apart.of_step(total.view(-1) / slots)
            for i, of_tensor in enumerate(found):
                for slot, value in enumerate(of_tensor):
                    sent = tensors[slot][i]
                    self.assertEqual((sent.dtype, sent.shape), (value.dtype, value.shape))
                    self.assertEqual(sent.reshape(-1).view(torch.uint8).tolist(),
                                     value.reshape(-1).view(torch.uint8).tolist())


class StepsTest(unittest.TestCase):
    def test_a_step_joins_what_its_slots_left(self) -> None:
        kept = kept_of(("seen", torch.tensor(1 << 60)), ("peak", torch.tensor([float("-inf"), 1.0])),
                       ("size", torch.tensor([0.1, 1.0])), ("short", torch.ones(2).bfloat16()),
                       ("total", torch.zeros((), dtype=torch.float64)))
        step = Step(kept, {"seen": "sum", "peak": "max", "*": "mean"})

        def slot(model: Any, number: int) -> None:
            model.seen += 1 + number
            model.peak[1] = torch.tensor([3.0, 7.0, 2.0])[number]
            model.size[1] += number
            model.short[0] += number
            model.total += 1e-9 * number
        for steps in (1, 2):
            step.take(slot)
            model = step.model
            self.assertEqual((1 << 60) + 6 * steps, int(model.seen))
            self.assertEqual([float("-inf"), 7.0], model.peak.tolist())
            self.assertEqual([float(torch.tensor(0.1)), 1.0 + steps], model.size.tolist())
            self.assertEqual([1.0 + steps, 1.0], model.short.tolist())
            self.assertAlmostEqual(steps * 1e-9, float(model.total), places=14)
        step.take(slot, present=1)  # the last step of an epoch has fewer slots
        self.assertEqual((1 << 60) + 13, int(model.seen))
        self.assertEqual(3.0, model.size[1])
        self.assertEqual({"seen", "peak", "size", "short", "total"}, set(step.names),
                         "all are in the state, whatever the trial's slot changed")

    def test_a_mean_that_no_slot_touched_keeps_its_bits(self) -> None:
        kept = kept_of(("size", torch.rand(1000)), ("idle", torch.tensor(float("inf"))))
        step = Step(kept, {"*": "mean"})
        before = step.model.size.clone()
        step.take(lambda model, number: None)
        self.assertTrue(torch.equal(before, step.model.size))
        self.assertTrue(all(floats.isfinite().all() for floats in step.buffers.sent(0)),
                        "the core would take the step for one whose gradients overflowed")
        step.take(lambda model, number: model.size.add_(3 * (number == 1)))
        self.assertTrue(torch.allclose(before + 1, step.model.size))

    def test_another_shape_is_named(self) -> None:
        kept = kept_of(("peak", torch.zeros(2)))
        for change in (lambda model, number: setattr(model, "peak", torch.zeros(3)),
                       lambda model, number: setattr(model, "peak", torch.zeros(2).double())):
            with self.assertRaisesRegex(Misuse, "the buffer peak .*before run.keep"):
                Step(kept, {"peak": "max"}).take(change)
            kept.modules["model"].peak = torch.zeros(2)

    def test_observers_are_joined_and_scales_follow_from_them(self) -> None:
        model = nn.Linear(2, 2)
        model.fake, model.seen = FusedMovingAvgObsFakeQuantize(), MinMaxObserver()
        kept = Kept()
        kept.keep(model=model, optimizer=optim.SGD(model.parameters(), 0.1))
        step = Step(kept, {})

        def slot(model: Any, number: int) -> None:
            for module in (model.fake, model.seen):
                module(torch.tensor([-1.0 - number, 2.0 + number]))
        step.take(slot)
        observer = model.fake.activation_post_process
        self.assertEqual((-2, 3), (observer.min_val, observer.max_val), "means of the slots' first values")
        self.assertEqual((-3, 4), (model.seen.min_val, model.seen.max_val))
        scale, zero_point = observer.calculate_qparams()
        self.assertEqual((scale, zero_point), (model.fake.scale, model.fake.zero_point))
        model.fake.scale.fill_(9)
        step.buffers.adopt()
        step.take(lambda model, number: None)
        self.assertEqual(9, model.fake.scale, "no observer has moved")


class CachesTest(unittest.TestCase):
    def setUp(self) -> None:
        self.model = nn.Linear(2, 2)
        self.size = 3

    def buffers_of(self, persistent: bool, large: bool) -> Buffers:
        self.width = 1 << 17 if large else 2
        self.model.register_buffer("cos", self.cos(3), persistent=persistent)
        kept = Kept()
        kept.keep(model=self.model, optimizer=optim.SGD(self.model.parameters(), 0.1))
        buffers = Buffers(kept.buffers)
        self.assertEqual([], buffers.settle())
        return buffers

    def cos(self, length: int) -> torch.Tensor:
        return torch.cos(torch.arange(length)[:, None] / (1 + torch.arange(float(self.width))))

    def test_one_that_follows_from_lengths_is_left_alone(self) -> None:
        for large in (False, True):
            for is_closely in (False, True):
                buffers = self.buffers_of(persistent=False, large=large)
                for length in (5, 7, 4):
                    buffers.restore()
                    if is_closely:
                        buffers.remember()
                    self.model.cos = self.cos(length)
                    buffers.check_unchanged()
                    buffers.restore()
                    self.assertEqual(length, len(self.model.cos))

    def test_one_that_grows_with_other_values_is_named(self) -> None:
        for large in (False, True):
            for is_closely in (False, True):
                buffers = self.buffers_of(persistent=False, large=large)
                if is_closely:
                    buffers.remember()
                self.model.cos = self.cos(5) + 1
                with self.assertRaisesRegex(Misuse, "the buffer cos"):
                    buffers.check_unchanged()

    def test_one_of_the_state_is_named(self) -> None:
        buffers = self.buffers_of(persistent=True, large=False)
        self.model.cos = self.cos(5)
        with self.assertRaisesRegex(Misuse, "the buffer cos"):
            buffers.check_unchanged()


if __name__ == "__main__":
    unittest.main()
