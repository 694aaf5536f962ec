"""The sums of a step, where the optimizers read them."""
from __future__ import annotations

import ctypes

import torch

from ._place import Device


class Sums:
    """`floats` sums lie at `address`, in the core's memory. The core writes the next step's sums
    there once it has the reply to APPLY."""

    def __init__(self, device: Device, address: int, floats: int):
        self._at_core = floats_at(address, floats)
        self.flat = self._at_core
        self._arrival = None
        if not device.is_host:
            self._is_pinned = device.pin(address, 4 * floats)
            self.flat = torch.empty(floats, device=device.place)
            self._arrival = device.event()

    def bring(self) -> None:
        """Brings this step's sums into `flat`, for all that the device computes from now on."""
        if self._arrival is not None:
            self.flat.copy_(self._at_core, non_blocking=self._is_pinned)
            self._arrival.record()

    def give_back(self) -> None:
        """Before the reply: waits until the device has read all sums."""
        if self._arrival is not None:
            self._arrival.synchronize()


def floats_at(address: int, floats: int) -> torch.Tensor:
    """A view of memory that outlives it."""
    if floats == 0:
        return torch.empty(0)
    return torch.frombuffer((ctypes.c_float * floats).from_address(address), dtype=torch.float32)
