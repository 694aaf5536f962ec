"""The length of a run, and when its script may end it."""
from __future__ import annotations

import unittest
from types import SimpleNamespace

from lockstep._errors import Misuse
from lockstep._finish import Finishes, Finishing


def run_of(epochs=0, max_steps=0, steps_per_epoch=None, is_trial=False, turns=1):
    run = Finishes()
    run._epochs = None
    run._phases = SimpleNamespace(count=turns)
    run._job = {"epochs": str(epochs), "max_steps": str(max_steps)}
    run._finishing = Finishing()
    run._check_process = lambda: None
    run._steps_per_epoch = steps_per_epoch
    run.is_trial = is_trial
    return run


class FinishTest(unittest.TestCase):
    def test_the_length_is_what_the_job_says_of_the_data(self):
        self.assertEqual(run_of(3, 0, 9).total_steps, 27)
        self.assertEqual(run_of(3, 20, 9).total_steps, 20)
        self.assertEqual(run_of(3, 30, 9).total_steps, 27)
        self.assertEqual(run_of(0, 30).total_steps, 30)
        self.assertEqual(run_of(0, 30, turns=4).total_steps, 32, "a batch that has begun is finished")
        for length in ("total_steps", "steps_per_epoch"):
            with self.assertRaisesRegex(Misuse, "known in the loop"):
                getattr(run_of(3), length)

    def test_an_end_belongs_to_the_order_in_hand(self):
        run = run_of()
        run._finishing.opens()
        self.assertFalse(run._finishing.closes())
        run._finishing.opens()
        run.finish()
        self.assertTrue(run._finishing.closes())
        with self.assertRaisesRegex(Misuse, "belongs into the loop's body"):
            run.finish()  # no order is in hand
        run._finishing.opens()  # the next slot has not asked
        self.assertFalse(run._finishing.closes())

    def test_elsewhere_it_is_refused_and_in_the_trial_it_does_nothing(self):
        with self.assertRaisesRegex(Misuse, "loop's body, between two epochs, or into update= or after_step="):
            run_of().finish()
        trial = run_of(is_trial=True)
        trial.finish()
        self.assertFalse(trial._finishing.closes())


if __name__ == "__main__":
    unittest.main()
