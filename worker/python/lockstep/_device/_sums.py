"""The sums of a step, where the optimizers read them."""
from __future__ import annotations

import ctypes

import torch

from ._place import Device


class Sums:
    """`floats` of them lie at `address`, in the core's memory: it writes the next step's there once it
    has the reply to APPLY."""

    def __init__(self, device: Device, address: int, floats: int):
        self._at_core = floats_at(address, floats)
        self.flat = self._at_core
        self._arrival = None
        if not device.is_host:
            self._is_pinned = device.pin(address, 4 * floats)
            self.flat = torch.empty(floats, device=device.place)
            self._arrival = device.event()

    def bring(self) -> None:
        """`flat` has this step's sums, for all that is computed on the device from now on."""
        if self._arrival is not None:
            self.flat.copy_(self._at_core, non_blocking=self._is_pinned)
            self._arrival.record()

    def give_back(self) -> None:
        """Before the reply: the device has read them all."""
        if self._arrival is not None:
            self._arrival.synchronize()


def floats_at(address: int, floats: int) -> torch.Tensor:
    """A view of memory that outlives it."""
    if floats == 0:
        return torch.empty(0)
    return torch.frombuffer((ctypes.c_float * floats).from_address(address), dtype=torch.float32)
