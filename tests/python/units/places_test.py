"""Gradients that stay on their device, and sums that are read there: what Python writes where, and when
the core hears of it. The device is the stand-in (device/lockstep_stand_in.py)."""

from __future__ import annotations

import unittest
from typing import Any

import lockstep_stand_in
import torch
from torch import nn, optim

from lockstep._core import Memory
from lockstep._device import Device, Places
from lockstep._errors import Misuse
from lockstep._gradients import Gradients
from lockstep._state import Kept

lockstep_stand_in.load()
PLACE = torch.device(lockstep_stand_in.NAME, 0)
ON = Device(PLACE)


def there(*values: float) -> torch.Tensor:
    return torch.tensor(values, device=PLACE)


class CoreThere:
    """A core with places and sums on the device, which notes its calls."""

    def __init__(self, floats: int) -> None:
        self.rooms = [torch.zeros(floats, device=PLACE) for _ in range(2)]
        self.at = 0  # the place of the present slot
        self.calls: list[tuple[Any, ...]] = []

    def place(self) -> int:
        return self.rooms[self.at].data_ptr()

    def __getattr__(self, name: str) -> Any:
        return lambda *args: self.calls.append((name, *args))


class PlacesTest(unittest.TestCase):
    """A layout of [gradient of a 2 x 2 weight: 0-3][of a bias: 4][statistic of three: 6-8]."""

    def setUp(self) -> None:
        self.core = CoreThere(9)
        self.means, used = torch.zeros(3), torch.ones(2)
        memory = Memory(0, self.means.data_ptr(), used.data_ptr(), [0, 4], [0], 6, 3, 6)
        model = nn.Module()
        model.weight = nn.Parameter(torch.zeros(2, 2, device=PLACE).t())
        model.bias = nn.Parameter(torch.zeros(1, device=PLACE))
        kept = Kept()
        kept.keep(model=model, optimizer=optim.SGD(model.parameters(), 1.0))
        self.places = Places(ON, self.core, memory, Gradients(kept.parameters).views_of, [(3,)])

    def test_gradients_and_statistics_are_written_where_the_core_says(self) -> None:
        for self.core.at in (0, 1):
            self.places.begin()
            grad = torch.tensor([[1.0, 2.0], [3.0, 4.0]], device=PLACE)
            self.places.send(0, grad)
            grad.zero_()  # the next kernel has its memory
            self.places.send(1, torch.tensor([0.5], dtype=torch.bfloat16, device=PLACE))
            self.places.send_statistic(0, torch.tensor([7.0, 8.0, 9.0]))
            self.assertEqual([1, 3, 2, 4, 0.5, 0, 7, 8, 9],
                             self.core.rooms[self.core.at].tolist(), "in the parameter's memory order")

    def test_the_core_hears_of_a_stream_before_its_first_write_and_of_a_gradient_after_it(self) -> None:
        self.core.writes_on = lambda stream: self.core.calls.append(
            ("writes_on", stream, self.core.rooms[0].tolist()[4]))
        self.core.wrote = lambda index, elements: self.core.calls.append(
            ("wrote", index, elements, self.core.rooms[0].tolist()[4]))
        other = torch.Stream(device=PLACE)
        self.places.begin()
        self.places.send(1, there(1.5))
        current = torch.accelerator.current_stream(PLACE)
        torch.accelerator.set_stream(other)
        try:
            self.places.send(1, there(2))
        finally:
            torch.accelerator.set_stream(current)
        self.places.send(1, there(4))
        self.assertEqual([("writes_on", 0, 0.0), ("wrote", 1, 1, 1.5),
                          ("writes_on", other.stream_id, 1.5), ("wrote", 1, 1, 3.5),
                          ("wrote", 1, 1, 7.5)], self.core.calls, "what comes again is added")
        self.core.calls.clear()
        self.places.begin()
        self.places.send(1, there(1))
        self.assertEqual([("writes_on", 0, 7.5), ("wrote", 1, 1, 1.0)], self.core.calls,
                         "each slot anew, and its first gradient replaces")

    def test_nothing_waits_for_the_device(self) -> None:
        before = torch.ops.lockstep_stand_in.waits()
        self.places.begin()
        for _ in range(3):
            self.places.send(0, torch.ones(2, 2, device=PLACE))
        self.assertEqual(before, torch.ops.lockstep_stand_in.waits())

    def test_a_gradient_of_another_shape_is_refused_before_it_is_written(self) -> None:
        self.places.begin()
        with self.assertRaisesRegex(Misuse, r"the shape \(2,\), and had \(2, 2\)"):
            self.places.send(0, there(1, 2))
        self.assertEqual([], self.core.calls)

    def test_sums_are_copied_between_the_two_calls_and_the_core_s_stay_as_they_are(self) -> None:
        sums = torch.tensor([1.0, 2, 3, 4, 5, 0, 1, 2, 10], device=PLACE)
        flat = torch.zeros(8, device=PLACE)
        self.core.has_read = lambda stream: self.core.calls.append(
            ("has_read", stream, flat.tolist()[:2], self.means.tolist()))
        self.places.bring(sums.data_ptr(), 0.5, 3, flat, self.means)
        self.assertEqual([("reads_on", 0), ("has_read", 0, [1.0, 2.0], [1.0, 2.0, 10.0])],
                         self.core.calls)
        self.assertEqual([0.5, 1, 1.5, 2, 2.5, 0, 0, 0], flat.tolist())
        self.assertEqual((torch.tensor([1.0, 2, 10]) / 3).tolist(), self.means.tolist())
        self.assertEqual([1, 2, 3, 4, 5, 0, 1, 2, 10], sums.tolist())

if __name__ == "__main__":
    unittest.main()
