"""The GradScaler that a script keeps, in Lockstep's hands."""
from __future__ import annotations

import gc
from typing import Any

import torch

from ._errors import Misuse
from ._state import Kept


def refuse_unkept(kept: Kept) -> None:
    """After the trial's first slot: raises Misuse if a GradScaler that the script did not give to
    keep() has scaled a loss: nothing would unscale the sums."""
    for found in gc.get_objects():
        if (issubclass(type(found), torch.amp.GradScaler) and found.is_enabled()
                and getattr(found, "_scale", None) is not None
                and all(found is not other for other in kept.others.values())):
            raise Misuse("the loop's body scales its loss by a GradScaler that run.keep() was not given, "
                         "so nothing would unscale the gradients; give it as run.keep(scaler=…), and "
                         "run.backward() the loss itself")


class Scaler:
    """REQUIRES: unscale() of an optimizer that has a gradient, before update()."""

    def __init__(self, kept: Kept, scaler: torch.amp.GradScaler):
        self._kept = kept
        self._scaler = scaler

    @staticmethod
    def of(kept: Kept) -> Scaler | None:
        """None: the script keeps none, or it is disabled."""
        return None if kept.scaler is None else Scaler(kept, kept.scaler)

    def scale(self, loss: torch.Tensor) -> torch.Tensor:
        with self._kept.scaling():
            return self._scaler.scale(loss)

    def unscale(self, optimizers: list[Any]) -> None:
        with self._kept.scaling():
            for optimizer in optimizers:
                self._scaler.unscale_(optimizer)

    def update(self) -> None:
        """A step that overflowed halves the scale; enough others in a row double it."""
        with self._kept.scaling():
            self._scaler.update()
