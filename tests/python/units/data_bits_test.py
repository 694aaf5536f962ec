"""The same batches, whatever computes them and in whichever order they are asked for."""

from __future__ import annotations

import collections
import dataclasses
import os
import random
import sys
import tempfile
import types
import unittest
import unittest.mock
from typing import Any

import torch
from data_support import Noisy, Numbers, flat, numpy, started, task
from torch.utils.data import Subset, TensorDataset, default_collate

from lockstep._data import DataError, Task, _seeds, facts, unpack
from lockstep._data._rows import Rows

Pair = collections.namedtuple("Pair", "left right")


@dataclasses.dataclass(frozen=True)
class Labelled:
    x: torch.Tensor
    words: list[str]
    length: int = dataclasses.field(init=False, default=0)


class WholeSlots(Noisy):
    def __getitems__(self, indices: list[int]) -> list[torch.Tensor]:
        return [torch.rand(2) + i for i in indices]



class BasicTransform:
    """A transform as in albumentations: it has a generator of its own, which no code seeds."""

    def __init__(self, *parts: Any) -> None:
        self.parts = parts
        self.set_random_seed(None)

    def set_random_seed(self, seed: int | None) -> None:
        self.generator = random.Random(seed)
        for part in self.parts:
            part.set_random_seed(seed)

    def __call__(self) -> list[float]:
        return [self.generator.random(), *(number for part in self.parts for number in part())]


class Compose(BasicTransform):
    def __call__(self) -> list[float]:
        return super().__call__()


class Augmented(Numbers):
    def __init__(self) -> None:
        super().__init__()
        self.one, self.other = Compose(BasicTransform()), Compose(BasicTransform())

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.tensor([self.one(), self.one(), self.other()])


class Bits(unittest.TestCase):
    def batches(self, dataset, workers, order=range(8), collate=None):
        feed = started(dataset, workers, collate)
        try:
            for step in order:
                feed.request(task(step))
            return [flat(feed.take(task(step, epoch=0))) for step in range(8)]
        finally:
            feed.close()

    def test_augmentations_with_generators_of_their_own_are_seeded_by_the_sample(self):
        library = types.SimpleNamespace(BasicTransform=BasicTransform, Compose=Compose)
        with unittest.mock.patch.dict(sys.modules, {"albumentations": library}):
            alone = self.batches(Augmented(), 0)
            self.assertEqual(alone, self.batches(Augmented(), 2, [3, 1, 0, 2, 7, 6, 5, 4]))
            first, second, other = Augmented()[0].tolist()
        self.assertEqual(3, len({*first[:1], *second[:1], *other[:1]}), "calls draw other numbers")

    def test_any_number_of_workers_and_any_order_of_requests_give_the_same_bits(self):
        alone = self.batches(Noisy(), 0)
        self.assertEqual(alone, self.batches(Noisy(), 1))
        self.assertEqual(alone, self.batches(Noisy(), 3, [7, 2, 2, 5, 0, 1, 6, 3, 4]))
        self.assertEqual(alone, self.batches(Noisy(), 3, []))

    def test_rows_of_tensors_are_selected_as_collate_would_stack_them(self):
        images = torch.rand(70, 3, 4, 5).contiguous(memory_format=torch.channels_last)
        every = TensorDataset(images, torch.arange(70), torch.rand(70, 2, requires_grad=True) > 0.5,
                              torch.rand(70, 2, dtype=torch.complex64).conj(),
                              torch.rand(70, 7).T.contiguous().T, torch.rand(70, 1).bfloat16())
        for dataset in (every, Subset(every, list(range(69, 3, -1))),
                        Subset(Subset(every, torch.randperm(70).tolist()), range(2, 68))):
            self.assertIsNotNone(Rows.of(dataset, default_collate))
            by_sample = self.batches(dataset, 0, collate=lambda samples: default_collate(samples))
            for workers in (0, 2):
                self.assertEqual(self.batches(dataset, workers), by_sample)

    def test_a_batch_of_rows_has_memory_of_its_own(self):
        dataset = TensorDataset(torch.zeros(64, 2))
        feed = started(dataset, 0)
        feed.take(task(0)).value[0].add_(1)
        self.assertEqual(float(dataset.tensors[0].sum()), 0)

    def test_what_only_its_own_functions_can_take_is_taken_sample_by_sample(self):
        class Own(TensorDataset):
            def __getitem__(self, index):
                return super().__getitem__(index)[0] + 1
        plain = TensorDataset(torch.zeros(64, 2))
        for dataset in (Own(torch.zeros(64, 2)), Subset(plain, [-1, 0]), Subset(plain, [64]),
                        TensorDataset(torch.eye(64).to_sparse()), Numbers()):
            self.assertIsNone(Rows.of(dataset, default_collate))
        self.assertIsNone(Rows.of(plain, lambda samples: samples))

    def test_samples_of_one_epoch_draw_different_numbers_and_those_of_the_next_do_too(self):
        feed = started(Noisy(), 0)
        batches = [feed.take(task(0, epoch=epoch)).value for epoch in (0, 1)]
        for drawn in ([value["sum"][k] for value in batches for k in (0, 1)],
                      *([value["y"][of][k] for value in batches for k in (0, 1)] for of in (0, 1))):
            self.assertEqual(len(set(map(float, drawn))), 4)

    def test_a_sample_is_seeded_by_its_position_whatever_slot_it_is_in(self):
        feed = started(Noisy(), 0)
        four = feed.take(task(1, size=4)).value["x"]
        eight = feed.take(task(0, size=8)).value["x"]
        self.assertTrue(torch.equal(four, eight[4:]))
        index = task(1).indices[0] + 1
        other = feed.take(Task(1, 0, 0, [4], [index])).value["x"]
        self.assertTrue(torch.allclose(four[:1] + 1, other, atol=1e-5))

    @unittest.skipIf(numpy is None, "numpy is not installed")
    def test_torch_and_numpy_do_not_draw_the_same_numbers(self):
        class Both(Numbers):
            def __getitem__(self, index):
                whole = int(numpy.random.randint(1 << 32, dtype="uint32"))
                return torch.tensor([int(torch.rand(()) * (1 << 24)), whole & 0xFFFFFF])  # torch's 24 bits

        value = started(Both(), 0).take(task(0)).value
        self.assertFalse((value[:, 0] == value[:, 1]).any())

    def test_a_run_draws_the_same_for_ever(self):
        """A resume and every other machine have these seeds. Other seeds would make another run."""
        self.assertEqual([0x6A43257A4BA62FC2, 0x8EFDA9E1371F7F02, 0xAB03565EDCB53BCF, 0x9991F78168A0A37E,
                          0x78BC1F9975E91647], [_seeds.epoch_key(7, 2, purpose) for purpose in (
                              _seeds.SAMPLE, _seeds.SLOT, _seeds.COLLATE, _seeds.EPOCH, _seeds.DRAW)])

    def test_a_slot_of_getitems_has_all_its_samples(self):
        class Short(WholeSlots):
            def __getitems__(self, indices):
                return super().__getitems__(indices[1:])

        with self.assertRaisesRegex(DataError, "returns 3 samples .* one for each of 4"):
            started(Short(), 0).take(task(0))

    def test_getitems_is_seeded_once_a_slot(self):
        alone = self.batches(WholeSlots(), 0)
        self.assertEqual(alone, self.batches(WholeSlots(), 2))
        self.assertNotEqual(alone[0][0][3], alone[1][0][3])

    def test_data_processes_do_not_share_a_file_that_facts_has_opened(self):
        class Lazy(Numbers):
            file = None

            def __getitem__(self, index):
                if self.file is None:
                    self.file = open(path, "rb")  # noqa: SIM115
                self.file.seek(index)
                os.sched_yield()
                return self.file.read(1)[0]

        with tempfile.NamedTemporaryFile() as file:
            file.write(bytes(range(64)))
            file.flush()
            path = file.name
            data = Lazy()
            feed = started(data, 2, torch.tensor)
            facts(unpack(data), 1)
            for step in range(40):
                feed.request(task(step + 1))
                self.assertEqual(feed.take(task(step)).value.tolist(), task(step).indices)
            folder = f"/proc/{feed._pool._zygote}/fd"
            links = [os.readlink(f"{folder}/{name}") for name in os.listdir(folder)]
            self.assertEqual(links.count(path), 1)  # That of the test, which was open before.
            feed.close()
            data.file.close()

    def test_collate_may_draw(self):
        def collate(samples):
            return torch.stack(samples) * torch.rand(4, 1)

        alone = self.batches(Numbers(), 0, collate=collate)
        self.assertEqual(alone, self.batches(Numbers(), 2, collate=collate))

    def test_computing_in_process_leaves_the_settings_of_the_script_alone(self):
        feed = started(Noisy(), 0)
        threads = torch.get_num_threads()
        with torch.no_grad(), torch.autocast("cpu"):
            feed.take(task(0))
            self.assertFalse(torch.is_grad_enabled())
            self.assertTrue(torch.is_autocast_enabled("cpu"))
        self.assertEqual(torch.get_num_threads(), threads)

    def test_samples_are_alike_inside_of_an_autocast_of_the_script(self):
        def collate(samples):
            return torch.stack(samples).view(-1, 1) @ torch.ones(1, 1)

        with torch.autocast("cpu", torch.bfloat16):
            for workers in (0, 1):
                feed = started(Numbers(), workers, collate)
                self.assertEqual(feed.take(task(0)).value.dtype, torch.float32, workers)
                feed.close()

    def test_facts_leave_the_generators_of_the_script_alone(self):
        torch.manual_seed(1)
        random.seed(1)
        expected = (torch.rand(2).tolist(), random.random())
        torch.manual_seed(1)
        random.seed(1)
        facts(unpack(Noisy()), 1)
        self.assertEqual((torch.rand(2).tolist(), random.random()), expected)

    def test_what_collate_may_return_arrives_as_it_was(self):
        def collate(samples):
            x = torch.stack(samples)
            value = {
                "x": x,
                3: [x.t(), x[:, :0], x[0, 0], x.bool(), x.bfloat16(), x.to(torch.complex64)],
                "images": x.view(1, 1, 4, 4).to(memory_format=torch.channels_last),
                "pair": Pair(1, (None, True, -(2**70), 0.1, float("inf"), "ü\udcff", b"\0x", b"")),
                "empty": [[], (), {}],
            }
            labelled = Labelled(x[0], ["a"])
            object.__setattr__(labelled, "length", 3)
            value["labelled"] = labelled
            if numpy is not None:
                value["array"] = x.numpy()[::-1]
                value["number"] = numpy.float32(0.1)
            return value

        for workers in (0, 1):
            feed = started(Numbers(), workers, collate)
            value = feed.take(task(0)).value
            x = torch.stack([Numbers()[i] for i in task(0).indices])
            expected = collate(list(x))
            if numpy is not None:
                got, want = value.pop("array"), expected.pop("array")
                self.assertEqual((got.dtype, got.tolist()), (want.dtype, want.tolist()))
                self.assertIs(type(value["number"]), numpy.float32)
            got, want = value.pop("labelled"), expected.pop("labelled")
            self.assertIs(type(got), Labelled)
            self.assertEqual(flat([got.x, got.words, got.length]),
                             flat([want.x, want.words, want.length]))
            plain = torch.contiguous_format
            expected[3][:2] = [t.clone(memory_format=plain) for t in expected[3][:2]]
            expected["images"] = expected["images"].clone(memory_format=plain)
            self.assertEqual(flat(value), flat(expected))
            feed.close()

    def test_subclasses_of_tuple_and_str_arrive_as_these(self):
        class Word(str):
            def __str__(self):
                return "another"

        def collate(samples):
            return [torch.zeros(2, 3).shape, {Word("a"): Word("b")}, torch.ones(1, 2).max(1)]

        for workers in (0, 1):
            feed = started(Numbers(), workers, collate)
            shape, words, found = feed.take(task(0)).value
            self.assertEqual((shape, type(shape), words), ((2, 3), tuple, {"a": "b"}))
            self.assertEqual({type(word) for word in (*words, *words.values())}, {str})
            self.assertEqual((type(found), len(found)), (tuple, 2))
            feed.close()

    def test_what_collate_returns_may_be_changed_without_harm_to_the_dataset(self):
        for workers in (0, 1):
            kept = torch.zeros(3)
            feed = started(Numbers(), workers, lambda samples, kept=kept: kept)
            feed.take(task(0)).value.add_(1)
            self.assertEqual(feed.take(task(1)).value.tolist(), [0, 0, 0])
            feed.close()


if __name__ == "__main__":
    unittest.main()
