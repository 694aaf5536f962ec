"""Gradients on their way from a device to the core, which reads the host's memory.

Backward does not wait for a copy: a hook enqueues one into pinned memory, on the stream that made
the gradient, and records an event after it. Each later hook hands over the copies that have arrived
meanwhile, so sums travel while backward goes on. finish() waits for the rest.

INVARIANTS
 G1 The core reads a copy only once its event is over.
 G2 A parameter's memory is written again only once the core has read it.
"""
from __future__ import annotations

from collections import deque
from typing import Any, Callable

import torch

from ._place import Device


class Staging:
    """`take` gets (index, gradient in the host's memory), in the order of send(). One thread at a
    time."""

    def __init__(self, device: Device, take: Callable[[int, torch.Tensor], None]):
        self._device = device
        self._take = take
        self._rooms: dict[int, torch.Tensor] = {}  # by parameter
        self._events: dict[int, Any] = {}
        self._on_the_way: deque[int] = deque()

    def send(self, index: int, grad: torch.Tensor) -> None:
        """`grad` may be freed, or written, afterwards."""
        while index in self._on_the_way:  # it comes a second time in this slot
            self._hand_over()
        room = self._room_of(index, grad)
        room.copy_(grad, non_blocking=True)
        self._events[index].record()
        self._on_the_way.append(index)
        while self._on_the_way and self._events[self._on_the_way[0]].query():
            self._hand_over()

    def finish(self) -> None:
        """The core has everything that was sent."""
        while self._on_the_way:
            self._hand_over()

    def begin(self) -> None:
        """Backward begins. What an aborted slot has sent is forgotten."""
        self._on_the_way.clear()

    def _hand_over(self) -> None:
        index = self._on_the_way.popleft()
        self._events[index].synchronize()
        self._take(index, self._rooms[index])

    def _room_of(self, index: int, grad: torch.Tensor) -> torch.Tensor:
        room = self._rooms.get(index)
        if room is None or room.dtype != grad.dtype:
            room = torch.empty_strided(grad.shape, grad.stride(), dtype=grad.dtype, pin_memory=True,
                                       device="cpu")
            self._rooms[index] = room
            self._events[index] = self._device.event()
        return room
