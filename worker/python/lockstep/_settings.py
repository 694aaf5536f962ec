"""Settings of torch that decide what a process computes, and that hold for all of it."""
from __future__ import annotations

from typing import Any

import torch

from ._errors import Misuse


def _now() -> dict[str, Any]:
    return {
        "torch.set_num_threads()": torch.get_num_threads(),
        "torch.set_default_dtype()": torch.get_default_dtype(),
        "torch.set_default_device()": torch.empty(0).device,  # torch.get_default_device() is slow
        "torch.set_grad_enabled()": torch.is_grad_enabled(),
        "torch.use_deterministic_algorithms()": torch.are_deterministic_algorithms_enabled(),
        "torch.set_float32_matmul_precision()": torch.get_float32_matmul_precision(),
        "torch.autocast()": torch.is_autocast_enabled("cpu"),
    }


class Settings:
    """As they were when the loop began. Raises Misuse for those with which no loop trains."""

    def __init__(self) -> None:
        self._values = _now()
        device = self._values["torch.set_default_device()"]
        if device.type != "cpu":
            raise Misuse(f"torch makes tensors on the device {device} by default, and scripts "
                         "compute on the CPU for now; take torch.set_default_device() or `with "
                         "torch.device()` from around the loop")
        if torch.is_inference_mode_enabled():
            raise Misuse("the loop over run.batches() stands in torch.inference_mode(), where "
                         "nothing is trained; take it from around the loop")

    def check(self) -> None:
        """A worker that is started later would compute without the change."""
        now = _now()
        if now == self._values:
            return
        name, value = next(pair for pair in now.items() if self._values[pair[0]] != pair[1])
        raise Misuse(f"the loop changed {name} from {self._values[name]} to {value}, which a worker "
                     "that joins later would not know of; set it before run.batches(), or set it "
                     "back in the same batch")
