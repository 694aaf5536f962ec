"""Slabs return, and what the script keeps stays as it is."""

from __future__ import annotations

import threading
import unittest

import torch
from data_support import Numbers, descriptors, eventually, flat, slab_maps, started, task


class Big(Numbers):
    """Samples of different sizes, some of many pages."""

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.full((1 + index % 7 * 5000,), float(index))


def padded(samples: list[torch.Tensor]) -> torch.Tensor:
    return torch.nn.utils.rnn.pad_sequence(samples, batch_first=True)


class Slabs(unittest.TestCase):
    def run_steps(self, feed, steps):
        for step in steps:
            for ahead in range(step, step + 6):
                feed.request(task(ahead))
            value = feed.take(task(step)).value
            self.assertEqual(value[:, 0].tolist(), task(step).indices)

    def test_500_batches_leave_no_descriptor_and_no_slab_behind(self):
        before = descriptors(), slab_maps()
        feed = started(Big(), 2, padded)
        self.run_steps(feed, range(100))
        settled = descriptors(), slab_maps()
        self.run_steps(feed, range(100, 500))
        for now, then in zip((descriptors(), slab_maps()), settled, strict=True):
            self.assertLessEqual(now, then + 8)
        pid = feed._pool.processes[0].pid
        with open(f"/proc/{pid}/maps", encoding="utf-8") as file:
            self.assertLessEqual(sum("memfd:lockstep" in line for line in file), 16)
        feed.close()
        del feed
        self.assertTrue(eventually(lambda: (descriptors(), slab_maps()) == before))

    def test_batches_that_the_script_keeps_stay_as_they_are(self):
        feed = started(Big(), 2, padded)
        kept = []
        for step in range(40):
            kept.append(feed.take(task(step)).value)
        self.assertLessEqual(slab_maps(), 16)  # The others were copied.
        row = feed.take(task(99)).value[2]
        self.run_steps(feed, range(40, 80))
        feed.close()
        for step, value in enumerate(kept):
            self.assertEqual(value[:, 0].tolist(), task(step).indices)
            self.assertTrue(torch.equal(value, padded([Big()[i] for i in task(step).indices])))
        self.assertEqual(row[0], task(99).indices[2])

    def test_what_the_script_writes_into_a_batch_is_in_no_other(self):
        feed = started(Numbers(), 1)
        for step in range(20):
            value = feed.take(task(step)).value
            self.assertEqual(value[:, 1].tolist(), task(step).indices)
            value.fill_(-1)
        feed.close()

    def test_a_slab_returns_when_another_thread_drops_the_last_tensor(self):
        feed = started(Numbers(), 1)
        for step in range(20):
            box = [feed.take(task(step)).value.t()]
            thread = threading.Thread(target=box.clear)
            thread.start()
            thread.join()
        self.assertLessEqual(slab_maps(), 3)
        feed.close()

    def test_a_batch_without_tensors_holds_no_slab(self):
        feed = started(Numbers(), 1, lambda samples: ["x", len(samples)])
        values = [feed.take(task(step)).value for step in range(20)]
        self.assertEqual(values, [["x", 4]] * 20)
        self.assertLessEqual(slab_maps(), 3)
        feed.close()


class Plan(unittest.TestCase):
    def test_a_task_that_is_asked_for_twice_is_computed_once(self):
        feed = started(Numbers(), 1, lambda samples: torch.stack(samples))
        for _ in range(3):
            feed.request(task(0))
        feed.take(task(1))
        self.assertEqual(len(feed._works), 1)
        feed.take(task(0))
        self.assertEqual(feed._number, 2)
        self.assertEqual(feed._works, {})
        feed.close()

    def test_no_more_is_computed_ahead_than_was_agreed(self):
        feed = started(Numbers(), 2)
        for step in range(12):
            feed.request(task(step))
        self.assertEqual(feed._number, 4)
        feed.take(task(11))  # Not in the window; it is computed all the same.
        feed.take(task(0))
        feed._pump(0)
        self.assertEqual(feed._number, 6)
        feed.close()

    def test_what_is_forgotten_makes_room(self):
        feed = started(Numbers(), 1)
        for round_ in range(20):
            for step in range(5):
                feed.request(task(5 * round_ + step))
            feed.forget(lambda each, round_=round_: each.step > 5 * round_)
            feed.take(task(5 * round_))
        self.assertTrue(eventually(lambda: not (feed._pump(1) or feed._works)))
        self.assertEqual((feed._busy, len(feed._queue)), (0, 0))
        self.assertLessEqual(slab_maps(), 4)
        feed.close()

    def test_what_is_forgotten_and_asked_for_again_in_work_is_computed_once(self):
        feed = started(Numbers(), 1)
        feed.request(task(0))
        feed.forget(lambda each: True)
        feed.request(task(0))
        self.assertEqual(flat(feed.take(task(0))), flat(started(Numbers(), 0).take(task(0))))
        feed.close()

    def test_a_slot_of_many_samples_is_no_matter(self):
        feed = started(Numbers(40_000), 1)
        big = [task(step, size=20_000, samples=40_000) for step in range(3)]
        for each in big:
            feed.request(each)
        for each in big:
            got = feed.take(each)
            self.assertEqual(got.indices, each.indices)
            self.assertEqual(got.value[:, 0].tolist(), each.indices)
        feed.close()


if __name__ == "__main__":
    unittest.main()
