"""Batches on their way to a device, one ahead of the loop."""
from __future__ import annotations

from typing import Any, NamedTuple

import torch

from .._data import remade
from .._errors import Misuse
from ._place import Device


def sender_to(device: Device, wanted: Any) -> Sender | None:
    """The sender for batches(device=wanted); None: batches stay where they are. Raises Misuse for
    another device than the run's."""
    if wanted is None:
        return None
    place = torch.device(wanted)
    if place.type != device.place.type or place.index not in (None, device.place.index):
        raise Misuse(f"batches(device={str(wanted)!r}): the run computes on {device.place} "
                     "(cluster.device); give it run.device")
    return None if device.is_host else Sender(device)


class Sent(NamedTuple):
    value: Any  # on the device, once `event` is over
    tensors: list[torch.Tensor]  # in it
    event: Any


class Sender:
    """Copies from pinned memory, on a stream of its own, so that the loop's body computes meanwhile.
    Main thread only."""

    def __init__(self, device: Device):
        self._device = device
        self._stream = torch.Stream(device=device.place)

    def send(self, value: Any) -> Sent:
        """Starts to send all tensors in a batch; the rest of it stays as it is."""
        event, tensors = self._device.event(), []

        def moved(tensor: torch.Tensor) -> torch.Tensor:
            if tensor.device.type == "cpu":  # a data set may lie on the device as a whole
                tensor = tensor.pin_memory()
            tensors.append(tensor.to(self._device.place, non_blocking=True))
            return tensors[-1]

        current = torch.accelerator.current_stream(self._device.place)
        torch.accelerator.set_stream(self._stream)
        try:
            sent = remade(value, moved)
            event.record()
        finally:
            torch.accelerator.set_stream(current)
        return Sent(sent, tensors, event)

    def arrived(self, sent: Sent) -> Any:
        """The batch, for everything that is computed from now on."""
        current = torch.accelerator.current_stream(self._device.place)
        current.wait_event(sent.event)
        for tensor in sent.tensors:
            tensor.record_stream(current)  # else its memory could go to the next batch too early
        return sent.value
