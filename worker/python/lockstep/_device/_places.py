"""Gradients that stay on their device, and sums that are read there (worker/script/script_device.h).

A hook writes a gradient into its slot's place of the core's memory, by one kernel of torch's on the
stream that made the gradient, and waits for nothing. The core puts the streams in order with its own.

INVARIANTS
 P1 The core knows a stream before anything of a slot is written on it, and a gradient only after the
    kernel that writes it is enqueued.
 P2 A step's sums are copied before anything changes them: peers may still read the core's.
"""
from __future__ import annotations

import math
from typing import Callable, Sequence

import torch

from .._core import Core, Memory
from .._errors import Misuse
from ._place import Device
from ._there import floats_there

# Views of the parameters' gradients in flat memory: Gradients.views_of().
Views = Callable[[torch.Tensor, list[int]], list[torch.Tensor]]


class Places:
    """begin() and send() for each slot, as Staging. One thread at a time."""

    def __init__(self, device: Device, core: Core, memory: Memory, views_of: Views,
                 statistics: Sequence[Sequence[int]]):
        """`statistics`: their shapes."""
        self._device = device
        self._core = core
        self._memory = memory
        self._views_of = views_of
        self._sizes = [math.prod(shape) for shape in statistics]
        self._known: dict[int, tuple[list[torch.Tensor], list[torch.Tensor]]] = {}  # by address
        self._sums: dict[int, torch.Tensor] = {}  # by address
        self._gradients: list[torch.Tensor] = []  # of this slot
        self._statistics: list[torch.Tensor] = []
        self._streams: set[int] = set()
        self._sent: set[int] = set()

    def begin(self) -> None:
        """Backward begins: the core has a place for this slot."""
        address = self._core.place()
        known = self._known.get(address)
        if known is None:
            known = self._known[address] = self._lay_out(address)
        self._gradients, self._statistics = known
        self._streams.clear()
        self._sent.clear()

    def send(self, index: int, grad: torch.Tensor) -> None:
        """`grad` may be freed, or written, afterwards by work on the same stream."""
        room = self._gradients[index]
        if grad.shape != room.shape:
            raise Misuse(f"a gradient has the shape {tuple(grad.shape)}, and had {tuple(room.shape)} "
                         "in the trial")
        self._follow()
        if index in self._sent:
            room.add_(grad)  # as the core adds what comes twice: widened, then added
        else:
            self._sent.add(index)
            room.copy_(grad)
        self._core.wrote(index, grad.numel())

    def finish(self) -> None:
        """All gradients were sent: nothing to wait for."""

    def send_statistic(self, index: int, floats: torch.Tensor) -> None:
        room = self._statistics[index]
        self._follow()
        room.copy_(floats.view(-1))
        self._core.wrote_statistic(index, room.numel())

    def bring(self, address: int, factor: float, slots: int, flat: torch.Tensor,
              means: torch.Tensor) -> None:
        """Brings a step's sums: gradients, times `factor`, into `flat` on the device, and statistics,
        over `slots`, into `means` on the host. `address`: of the core's sums."""
        at = self._memory.statistics_at
        sums = self._sums.get(address)
        if sums is None:
            sums = self._sums[address] = floats_there(self._device.place, address,
                                                      at + self._memory.statistic_floats)
        stream = self._device.stream()
        self._core.reads_on(stream)
        flat[:at].copy_(sums[:at])
        if means.numel():
            means.copy_(sums[at:])
        self._core.has_read(stream)
        if factor != 1:
            flat[:at].mul_(factor)
        means.div_(float(slots))  # on the host: a GPU multiplies by the inverse of a number

    def _follow(self) -> None:
        stream = self._device.stream()
        if stream not in self._streams:
            self._core.writes_on(stream)
            self._streams.add(stream)

    def _lay_out(self, address: int) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
        memory = self._memory
        at = memory.statistics_at
        flat = floats_there(self._device.place, address, at + memory.statistic_floats)
        begins = [at + begin for begin in memory.statistic_begins]
        return (self._views_of(flat, memory.parameter_begins),
                [flat[begin:begin + size] for begin, size in zip(begins, self._sizes)])
