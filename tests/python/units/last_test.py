"""A run's knowledge of its last step, and how often it makes a scheduler step."""
from __future__ import annotations

import math
import unittest
from types import SimpleNamespace

import torch
from torch import nn
from torch.optim.lr_scheduler import ReduceLROnPlateau, StepLR

from lockstep._last import NAME, Evaluated, Last, LastStep
from lockstep._state import Kept, MisuseError, times_due
from lockstep._state._objects import decode, encode


def order(step, loss=0.5, metric=0.25, evaluated=(0, 0.0, 0, 0)):
    """The order to apply `step`, from 0."""
    names = ("step", "loss", "correct", "samples")
    return SimpleNamespace(step=step, task=SimpleNamespace(turn=0), loss=loss, metrics=[metric],
                           evaluated=SimpleNamespace(**dict(zip(names, evaluated))))


def last_step(knows_right=True):
    last = LastStep()
    last.begin(["a"], [["a"]], knows_right, steps_per_epoch=3)
    return last


class LastTest(unittest.TestCase):
    def test_a_step_and_the_evaluation_before_it(self):
        last = last_step()
        self.assertIsNone(last.value)
        last.applies(order(0))
        self.assertEqual(last.value, Last(1, 0.5, {"a": 0.25}, None))
        last.applies(order(1, evaluated=(1, 2.0, 3, 4)))
        self.assertEqual(last.value.evaluation, Evaluated(1, 2.0, 0.75))
        last = last_step(knows_right=False)
        last.applies(order(1, evaluated=(1, 2.0, 0, 4)))
        self.assertIsNone(last.value.evaluation.accuracy)

    def test_it_is_part_of_the_state(self):
        for orders in ([], [order(4)], [order(4, math.inf, 0.1, (2, 1 / 3, 1, 3))]):
            last, other = last_step(), last_step()
            for one in orders:
                last.applies(one)
            other.applies(order(9))
            other.load_state_dict(decode(encode(last.state_dict(), ""), ""))
            self.assertEqual(other.value, last.value)

    def test_a_state_of_an_earlier_version_has_none(self):
        model, kept, last = nn.Linear(2, 2), Kept(), last_step()
        kept.keep(model=model, optimizer=torch.optim.SGD(model.parameters(), 0.1))
        state = {(e.section, e.name): e.tensor.clone() for e in kept.describe()}
        kept.others[NAME] = last
        self.assertEqual([key for key, _ in kept.identity() if NAME in key], [])
        last.applies(order(4))
        kept.install(state)
        self.assertIsNone(last.value)

    def test_epochs_end_with_their_last_step_or_with_the_next_one_that_counts(self):
        last = last_step()
        ended = [last.applies(order(step)) for step in range(7)]
        self.assertEqual(ended, [0, 0, 1, 0, 0, 1, 0])
        self.assertEqual(last.applies(order(12)), 2, "step 9 and step 12 counted nothing")
        resumed = last_step()
        resumed.load_state_dict(last.state_dict())
        self.assertEqual([resumed.applies(order(step)) for step in (13, 14)], [0, 1])


class PaceTest(unittest.TestCase):
    def setUp(self):
        self.model = nn.Linear(2, 2)
        self.optimizer = torch.optim.SGD(self.model.parameters(), 0.1)
        self.by_step = StepLR(self.optimizer, 1)
        self.by_loss = ReduceLROnPlateau(self.optimizer)

    def test_names_say_when_a_scheduler_steps(self):
        for name, scheduler, due in (("scheduler", self.by_step, [1, 1, 0]),
                                     ("epoch_scheduler2", self.by_step, [0, 2, 2]),
                                     ("own_scheduler", self.by_step, [0, 0, 0]),
                                     ("plateau", self.by_loss, [0, 0, 0])):
            self.assertEqual([times_due(name, scheduler, *how)
                              for how in ((True, 0), (True, 2), (False, 2))], due, name)

    def test_what_does_not_step_by_itself_is_no_scheduler_of_epochs(self):
        for name, kept, said in (("epoch_scheduler", self.by_loss, "by the numbers of run.last"),
                                 ("own_scheduler", torch.amp.GradScaler("cpu"), "a scheduler of torch")):
            with self.assertRaisesRegex(MisuseError, said):
                Kept().keep(model=self.model, optimizer=self.optimizer, **{name: kept})


if __name__ == "__main__":
    unittest.main()
