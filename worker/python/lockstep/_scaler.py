"""The GradScaler that a script keeps, in Lockstep's hands."""
from __future__ import annotations

from typing import Any

import torch

from ._state import Kept


class Scaler:
    """REQUIRES: unscale() of an optimizer that has a gradient, before update()."""

    def __init__(self, kept: Kept, scaler: torch.amp.GradScaler):
        self._kept = kept
        self._scaler = scaler

    @staticmethod
    def of(kept: Kept) -> Scaler | None:
        """None: there is none among what is kept, or it is switched off."""
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
