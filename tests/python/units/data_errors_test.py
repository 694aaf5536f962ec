"""Data that are refused or fail, and the messages about them."""

from __future__ import annotations

import errno
import unittest

import torch
from data_support import Noisy, Numbers, started, task
from torch.utils.data import (
    DataLoader,
    IterableDataset,
    RandomSampler,
    Subset,
    TensorDataset,
    WeightedRandomSampler,
)

from lockstep._data import DataError, Task, facts, unpack


class Stream(IterableDataset):
    def __iter__(self):
        return iter(range(3))


class SubTensor(torch.Tensor):
    pass


class Refusals(unittest.TestCase):
    def refused(self, data, *words, code=64):
        with self.assertRaises(DataError) as caught:
            unpack(data)
        self.assertEqual(caught.exception.code, code)
        for word in words:
            self.assertIn(word, caught.exception.text)

    def test_a_plain_loader_is_taken_apart(self):
        def collate(samples):
            return samples

        data = Numbers()
        source = unpack(DataLoader(data, 8, shuffle=True, num_workers=2, collate_fn=collate))
        self.assertIs(source.dataset, data)
        self.assertIs(source.collate, collate)
        self.assertEqual((source.workers, source.batch_size, source.samples), (2, 8, 64))
        self.assertEqual(unpack(DataLoader(data, sampler=RandomSampler(data))).samples, 64)

    def test_loaders_with_an_order_or_a_cut_of_their_own_are_refused(self):
        data = Numbers()
        self.refused(DataLoader(data), "shuffle=False", "shuffle=True")
        self.refused(DataLoader(data, shuffle=True, drop_last=True), "drop_last=True")
        self.refused(DataLoader(data, batch_sampler=[[0], [1]]), "batch_sampler")
        self.refused(DataLoader(data, batch_size=None), "batch_size=None")
        weighted = WeightedRandomSampler([1.0] * 64, 64, replacement=False)
        self.refused(DataLoader(data, sampler=weighted), "WeightedRandomSampler")
        replaced = RandomSampler(data, replacement=True)
        self.refused(DataLoader(data, sampler=replaced), "replacement")
        fewer = RandomSampler(data, num_samples=10)
        self.refused(DataLoader(data, sampler=fewer), "num_samples")
        generator = torch.Generator()
        self.refused(DataLoader(data, shuffle=True, generator=generator), "generator")
        init = DataLoader(data, shuffle=True, num_workers=1, worker_init_fn=print)
        self.refused(init, "worker_init_fn")

        class Prefetching(DataLoader):
            def __iter__(self):
                return iter([])

        class Named(DataLoader):
            pass

        self.refused(Prefetching(data, shuffle=True), "Prefetching", "its own __iter__")
        self.assertEqual(unpack(Named(data, shuffle=True)).samples, 64)
        spawn = DataLoader(data, shuffle=True, num_workers=1, multiprocessing_context="spawn")
        self.refused(spawn, "spawn")

    def test_what_is_no_map_style_dataset_is_refused(self):
        self.refused(Stream(), "IterableDataset", "__getitem__")
        self.refused(DataLoader(Stream()), "IterableDataset")
        self.refused(iter([1]), "__len__")
        self.refused((torch.zeros(3), torch.zeros(3)), "TensorDataset")
        self.refused({"x": 1}, "dict")
        self.refused(RandomSampler([1]), "sampler")
        self.refused([], "no samples", code=65)

    def test_a_subset_has_getitems_only_if_its_dataset_has(self):
        class Part(Subset):
            pass

        class Whole(Numbers):
            def __getitems__(self, indices):
                return [self[i] for i in indices]

        self.assertFalse(unpack(Subset(Numbers(), [1, 2])).whole_slots)
        nested = Subset(Subset(Numbers(), [5, 6, 7]), [2, 0])
        self.assertFalse(unpack(nested).whole_slots)
        self.assertFalse(unpack(Part(Numbers(), [1, 2])).whole_slots)
        self.assertTrue(unpack(Part(Subset(Whole(), [1, 2]), [0])).whole_slots)
        for data in (nested, Subset(Subset(Whole(), [5, 6, 7]), [2, 0])):
            feed = started(data, 0)
            batch = feed.take(Task(0, 0, 0, [0, 1], [1, 0]))
            self.assertEqual(batch.value[:, 0].tolist(), [5.0, 7.0])
            feed.close()
        pairs = TensorDataset(torch.arange(4))
        self.assertEqual(unpack(pairs).whole_slots, hasattr(pairs, "__getitems__"))


class Failures(unittest.TestCase):
    def fails(self, dataset, *words, collate=None, code=65, wanted=None):
        """The same error from a data process and in process."""
        texts = []
        for workers in (0, 1):
            feed = started(dataset, workers, collate)
            try:
                feed.take(task(1))
                with self.assertRaises(DataError) as caught:
                    feed.take(wanted or task(3))
                self.assertEqual(caught.exception.code, code)
                texts.append(caught.exception.text)
                self.assertEqual(feed.take(task(1)).indices, task(1).indices)
            finally:
                feed.close()
        for word in words:
            self.assertIn(word, texts[0])
        self.assertEqual(texts[0], texts[1])

    def test_an_exception_names_position_index_and_line_of_the_sample(self):
        def hook(index):
            if index == 65 % 64:
                raise ValueError("bad jpeg")

        words = (
            "__getitem__ of Numbers",
            "ValueError: bad jpeg",
            "position 13 of epoch 0",
            "index 1;",
            "step 3, slot 0",
            "in hook",
            "Traceback",
        )
        self.fails(Numbers(hook=hook), *words)

    def test_an_exception_in_getitems_or_collate_names_the_slot(self):
        class Whole(Numbers):
            def __getitems__(self, indices):
                if 1 in indices:
                    raise KeyError("nope")
                return [torch.tensor(i) for i in indices]

        where = "positions 12 to 15 of epoch 0 (indices 60, 1, 6, 11;"
        self.fails(Whole(), "__getitems__ of Whole", where, "KeyError: 'nope'")

        def collate(samples):
            return {"x": 1 / (samples[1][0] - 1).item()}

        self.fails(Numbers(), "collate of Numbers", where, "ZeroDivisionError", collate=collate)

    def test_what_the_machine_lacks_is_not_the_samples_fault(self):
        def hook(index):
            if index == 1:
                raise OSError(errno.EIO, "read failed")

        self.fails(Numbers(hook=hook), "OSError", "index 1;", "memory, disk and network", code=70)

    def test_a_sample_with_a_gradient_arrives_without(self):
        class Learned(Numbers):
            def __getitem__(self, index):
                return torch.full((2,), float(index), requires_grad=True) * 2

        for workers in (0, 1):
            feed = started(Learned(), workers)
            batch = feed.take(task(3)).value
            self.assertFalse(batch.requires_grad)
            self.assertEqual(batch[:, 0].tolist(), [120.0, 2.0, 12.0, 22.0])
            feed.close()

    def test_samples_that_do_not_travel_are_named_as_what_collate_makes_of_them(self):
        for make, words in (
            (lambda x: x.to_sparse(), "Batches of sparse tensors"),  # torch says so
            (lambda x: x.as_subclass(SubTensor), "SubTensor at batch: the class of a tensor"),
            (lambda x: x.to("meta"), "Tensor at batch: it is on meta"),
        ):

            class Odd(Numbers):
                def __getitem__(self, index, make=make):
                    value = super().__getitem__(index)
                    return make(value) if index in (60, 1, 6, 11) else value

            facts(unpack(Odd()), 1)
            self.fails(Odd(), words)

    def test_exit_in_a_sample_is_an_error_of_the_sample(self):
        def hook(index):
            if index == 1:
                raise SystemExit(3)

        self.fails(Numbers(hook=hook), "SystemExit", "index 1;")

    def test_what_does_not_travel_is_named_with_its_place(self):
        cases = [
            (lambda x: (1, {"a": object()}), "object at batch[1]['a']"),
            (lambda x: [x, x.to_sparse()], "Tensor at batch[1]: it is sparse"),
            (lambda x: {"m": x.to("meta")}, "batch['m']: it is on meta"),
            (lambda x: [x.as_subclass(SubTensor)], "SubTensor at batch[0]"),
            (lambda x: {(1, 2): x}, "tuple at a key of batch"),
            (lambda x: ["y" * (5 << 20)], "bytes of numbers and strings"),
        ]
        for make, words in cases:

            def collate(samples, make=make):
                return make(samples[0]) if samples[1][0] == 1 else 0

            self.fails(Numbers(), words, collate=collate)

    def test_a_dataset_that_grows_is_seen_at_the_edge_of_the_epoch(self):
        for workers in (0, 1):
            data = Numbers()
            feed = started(data, workers)
            feed.take(task(0))
            data.samples = 65
            feed.take(task(1))
            with self.assertRaises(DataError) as caught:
                feed.take(task(2, epoch=1))
            self.assertEqual(caught.exception.code, 65)
            self.assertIn("is 65 at the start of epoch 1, it was 64", caught.exception.text)
            feed.close()

    def test_an_error_of_a_task_that_nobody_takes_harms_nobody(self):
        def hook(index):
            if index == 1:
                raise ValueError

        feed = started(Numbers(hook=hook), 1)
        feed.request(task(3))
        self.assertEqual(feed.take(task(0)).indices, task(0).indices)
        feed.forget(lambda each: each.step == 3)
        feed.close()


class FactsOfDatasets(unittest.TestCase):
    def test_the_fingerprint_depends_on_the_data_and_not_on_the_process_state(self):
        first = facts(unpack(Noisy()), 1)
        torch.rand(3)
        self.assertEqual(first, facts(unpack(Noisy()), 1))
        self.assertEqual(first.samples, 64)
        self.assertNotEqual(first, facts(unpack(Noisy(65)), 1))
        self.assertNotEqual(
            facts(unpack([torch.zeros(2)] * 4), 1), facts(unpack([torch.ones(2)] * 4), 1)
        )

    def test_a_fingerprint_of_the_dataset_itself_counts(self):
        data = Numbers()
        data._fingerprint = "drawn by each process, where a function cannot be hashed"
        self.assertEqual(facts(unpack(data), 1), facts(unpack(Numbers()), 1))
        data.fingerprint = "abc"
        self.assertEqual(facts(unpack(data), 1).fingerprint, "abc")

    def test_a_sample_that_draws_what_nobody_can_seed_is_named_in_exact_only(self):
        class Own(Numbers):
            generator = torch.Generator()

            def __getitem__(self, index):
                return torch.rand(2, generator=self.generator) if index == 9 else index

        with self.assertRaises(DataError) as caught:
            facts(unpack(Own(12)), 1)
        self.assertEqual(caught.exception.code, 78)
        self.assertIn("sample 9 of Own", caught.exception.text)
        fast = facts(unpack(Own(12)), 1, exact=False)
        self.assertEqual(fast, facts(unpack(Own(12)), 1, exact=False))

    def test_objects_count_by_their_fields_and_cycles_end(self):
        class Thing:
            def __init__(self, value):
                self.value = value
                self.me = [self, self]

        one, same, other = ([Thing(v)] * 3 for v in (1, 1, 2))
        self.assertEqual(facts(unpack(one), 1), facts(unpack(same), 1))
        self.assertNotEqual(facts(unpack(one), 1), facts(unpack(other), 1))


if __name__ == "__main__":
    unittest.main()
