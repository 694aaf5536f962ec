"""Weighted drawing: the samples at the positions of an epoch, by whole numbers alone."""

from __future__ import annotations

import collections
import unittest
import unittest.mock
from typing import Any

import numpy
import torch
from torch.utils.data import DataLoader, RandomSampler, TensorDataset, WeightedRandomSampler

from lockstep._ahead import Ahead
from lockstep._batches import _drawing_of, check_arguments
from lockstep._core import Task
from lockstep._data import DataError, unpack
from lockstep._data._drawing import Drawing
from lockstep._data._seeds import DRAW, epoch_key, mix
from lockstep._errors import Misuse


class DrawingTest(unittest.TestCase):
    def draws(self, weights: Any, epochs: int = 1, seed: int = 7) -> list[int]:
        drawing = Drawing(weights, len(weights))
        return [found for epoch in range(epochs)
                for found in drawing.draw(seed, epoch, range(len(weights)))]

    def test_a_run_draws_the_same_for_ever(self) -> None:
        """Another draw would be another run: a resume, and every other machine, draws these."""
        weights = [1.0, 0.5, 0.25, 10.0, 0.0, 3.0, 1e-3, 2.0]
        drawing = Drawing(weights, 8)
        self.assertEqual([1, 7, 3, 0, 7, 7, 3, 7], drawing.draw(7, 0, range(8)))
        self.assertEqual([5, 3, 3, 0, 3, 3, 3, 3], drawing.draw(7, 1, range(8)))
        self.assertEqual("8 weights, 019e533f95a4e27c09937125e72fdff4", drawing.hash())

    def test_each_position_is_drawn_by_itself(self) -> None:
        drawing = Drawing(torch.rand(100), 100)
        whole = drawing.draw(1, 2, range(100))
        self.assertEqual(whole[30:40], drawing.draw(1, 2, range(30, 40)))
        self.assertNotEqual(whole, drawing.draw(1, 3, range(100)))
        self.assertNotEqual(whole, drawing.draw(2, 2, range(100)))

    def test_it_is_whole_numbers_compared_with_ends(self) -> None:
        """Counted by hand, in Python's own numbers."""
        weights = [3, 0, 1, 4]
        drawing = Drawing(weights, 4)
        scale = 2 ** (62 - 3 - 3)  # 4 is 0.5 * 2^3, and 4 samples take three bits
        ends = [3 * scale, 3 * scale, 4 * scale, 8 * scale]
        key = epoch_key(5, 6, DRAW)
        for position in range(50):
            place = mix(key ^ position) * ends[-1] >> 64
            found = next(i for i, end in enumerate(ends) if place < end)
            self.assertEqual([found], drawing.draw(5, 6, [position]))

    def test_samples_come_in_proportion_to_their_weights(self) -> None:
        weights = torch.rand(500, generator=torch.Generator().manual_seed(1)) * torch.arange(500)
        found = torch.bincount(torch.tensor(self.draws(weights, epochs=100)), minlength=500)
        expected = weights.double() / weights.sum() * 50_000
        strange = ((found - expected) ** 2 / expected)[1:].sum()
        self.assertEqual(0, found[0])
        self.assertLess(abs(strange - 499), 5 * (2 * 499) ** 0.5, "chi-square of 499 degrees")

    def test_scales_and_types_do_not_matter(self) -> None:
        weights = [0.5, 0.25, 3.0, 0.0, 1.5]
        hashes = {Drawing(same, 5).hash() for same in (
            weights, tuple(weights), torch.tensor(weights), torch.tensor(weights).to(torch.bfloat16),
            numpy.array(weights), numpy.array(weights, "float32"), [w * 2.0**-1000 for w in weights],
            [w * 2.0**1000 for w in weights], torch.tensor([2, 1, 12, 0, 6]),
            torch.tensor([weights, weights]).T[:, 1])}
        self.assertEqual(1, len(hashes), hashes)
        self.assertNotEqual(hashes, {Drawing([*weights[:-1], 1.25], 5).hash()})

    def test_extremes_can_be_drawn_and_zeros_cannot(self) -> None:
        for weights in ([1e-300, 1e300], [5e-324, 5e-324], [1.7e308, 1.7e308], [1e-40, 0, 1]):
            drawing = Drawing(weights, len(weights))
            steps = drawing._ends.diff(prepend=torch.zeros(1, dtype=torch.int64)).tolist()
            self.assertEqual([w > 0 for w in weights], [step > 0 for step in steps])
            self.assertLessEqual(drawing._total, 2**62)
        self.assertEqual({2}, set(self.draws([0, 0, 1], epochs=20)))
        self.assertEqual({0}, set(self.draws([True, False], epochs=20)))

    def test_a_hundred_thousand_equal_weights_are_alike(self) -> None:
        found = collections.Counter(self.draws(torch.ones(100_000)))
        self.assertAlmostEqual(0.632, len(found) / 100_000, delta=0.01)  # 1 - 1/e of them

    def test_what_is_no_weight_is_refused_by_name(self) -> None:
        for weights, words in (([1, 2], "2 weights for 3 samples"), ([1, -1, 1], "sample 1 is -1.0"),
                               ([0, 0, 0], "all weights are 0"), ([1, float("nan"), 1], "sample 1 is nan"),
                               ([1, 1, float("inf")], "sample 2 is inf"), ("abc", "str"),
                               (torch.ones(3, 2), "3x2 weights"), (torch.ones(()), "1 weights"),
                               (torch.ones(3).to_sparse(), "sparse"), ([1j, 2, 3], "complex"),
                               (torch.ones(3, dtype=torch.complex64), "complex"), ({0: 1}, "dict"),
                               (["a", "b", "c"], "list")):
            with self.assertRaisesRegex(DataError, words) as caught:
                Drawing(weights, 3)
            self.assertEqual(64, caught.exception.code)


class TakenTest(unittest.TestCase):
    DATA = TensorDataset(torch.arange(12))

    def loader(self, **named: Any) -> DataLoader:
        weights = torch.arange(12.0)
        return DataLoader(self.DATA, 4, sampler=WeightedRandomSampler(weights, **{"num_samples": 12, **named}))

    def test_a_loaders_weights_are_taken(self) -> None:
        drawing = _drawing_of(unpack(self.loader()), None)
        assert drawing is not None
        self.assertEqual(Drawing(torch.arange(12.0), 12).hash(), drawing.hash())
        self.assertIsNone(_drawing_of(unpack(self.DATA), None))
        self.assertIsNone(_drawing_of(unpack(DataLoader(self.DATA, 4, shuffle=True)), None))

    def test_other_samplers_are_refused_with_what_to_do(self) -> None:
        for loader, words in (
                (self.loader(replacement=False), "replacement=True"),
                (self.loader(num_samples=5), "num_samples=12.*train.max_steps"),
                (self.loader(generator=torch.Generator()), "generator="),
                (DataLoader(self.DATA, sampler=RandomSampler(self.DATA, replacement=True)), "weights"),
                (DataLoader(self.DATA, sampler=torch.utils.data.SubsetRandomSampler([1])), "weights=")):
            with self.assertRaisesRegex(DataError, words):
                unpack(loader)

    def test_weights_are_given_once_and_with_the_scripts_data(self) -> None:
        with self.assertRaisesRegex(Misuse, "leave one of the two out"):
            _drawing_of(unpack(self.loader()), torch.ones(12))
        with self.assertRaisesRegex(Misuse, "data.mix"):
            check_arguments({"has_data": "1"}, None, None, None, weights=[1.0])
        with self.assertRaisesRegex(DataError, "2 weights for 12 samples"):
            _drawing_of(unpack(self.DATA), [1, 2])

    def test_the_dataset_is_asked_for_what_is_drawn_and_the_ledger_for_positions(self) -> None:
        core, feed = unittest.mock.Mock(job={"seed": "3"}), unittest.mock.Mock()
        core.indices.side_effect = lambda task: [100 + i for i in range(task.begin, task.end)]
        feed.take.side_effect = lambda task: unittest.mock.Mock(value="batch", indices=task.indices)
        drawing = Drawing(torch.arange(12.0), 12)
        ahead = Ahead(core, feed, 0, drawing)
        task = Task(step=4, slot=1, epoch=2, begin=5, end=9)
        self.assertEqual("batch", ahead.take(task, is_trial=False))
        asked = feed.take.call_args.args[0]
        self.assertEqual([5, 6, 7, 8], asked.positions)
        self.assertEqual(drawing.draw(3, 2, range(5, 9)), asked.indices)
        core.has_samples.assert_called_once_with([105, 106, 107, 108])
        self.assertEqual([("batches.weights", drawing.hash())], ahead.identity())
        self.assertEqual([], Ahead(core, feed, 0).identity())


if __name__ == "__main__":
    unittest.main()
