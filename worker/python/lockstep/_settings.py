"""Settings of torch that hold for a whole process and decide what it computes."""
from __future__ import annotations

from typing import Any

import torch

from ._errors import Misuse


def _now(place: torch.device) -> dict[str, Any]:
    return {
        "torch.set_num_threads()": torch.get_num_threads(),
        "torch.set_default_dtype()": torch.get_default_dtype(),
        "torch.set_default_device()": torch.empty(0).device,  # torch.get_default_device() is slow
        "torch.set_grad_enabled()": torch.is_grad_enabled(),
        "torch.use_deterministic_algorithms()": torch.are_deterministic_algorithms_enabled(),
        "torch.set_float32_matmul_precision()": torch.get_float32_matmul_precision(),
        "torch.autocast()": torch.is_autocast_enabled(place.type),
    }


class Settings:
    """The settings when the loop began. Raises Misuse for settings with which no loop trains.
    `place`: where the run computes."""

    def __init__(self, place: torch.device) -> None:
        self._place = place
        self._values = _now(place)
        device = self._values["torch.set_default_device()"]
        if device.type not in ("cpu", place.type):
            raise Misuse(f"torch makes tensors on the device {device} by default, and the run "
                         f"computes on {place} (cluster.device); take torch.set_default_device() or "
                         "`with torch.device()` from around the loop")
        if torch.is_inference_mode_enabled():
            raise Misuse("the loop over run.batches() stands in torch.inference_mode(), where "
                         "nothing is trained; take it from around the loop")

    def check(self) -> None:
        """Raises for a change: a worker that starts later would compute without it."""
        now = _now(self._place)
        if now == self._values:
            return
        name, value = next(pair for pair in now.items() if self._values[pair[0]] != pair[1])
        raise Misuse(f"the loop changed {name} from {self._values[name]} to {value}, which a worker "
                     "that joins later would not know of; set it before run.batches(), or set it "
                     "back in the same batch")
