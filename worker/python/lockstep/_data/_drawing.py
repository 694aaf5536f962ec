"""Weighted drawing: which sample stands at a position of an epoch, where run.batches() has weights.

The order has each position once an epoch; the sample at a position is drawn with replacement. The
draw is integer arithmetic on (seed, epoch, position), so it is the same in every world, in a
resume, and on every machine.
"""

from __future__ import annotations

import ctypes
import hashlib
import math
from collections.abc import Sequence
from typing import Any

import torch

from ._errors import USAGE, DataError
from ._seeds import DRAW, epoch_key, mix

_BITS = 62  # The sum of all whole weights is below 2^62.


def _refuse(what: str) -> DataError:
    return DataError(USAGE, f"run.batches(weights=...): {what}")


def _as_floats(weights: Any, samples: int) -> torch.Tensor:
    """Raises DataError(64) unless they are a finite number of at least 0 for each sample."""
    try:
        plain = None if hasattr(weights, "dtype") else torch.float64  # A list: as Python's floats.
        found = torch.as_tensor(weights, dtype=plain, device="cpu").detach()
        if found.is_complex() or found.layout is not torch.strided:
            raise TypeError(f"they are {found.dtype}, {found.layout}")
        found = found.to(torch.float64)
    except (RuntimeError, TypeError, ValueError) as why:
        raise _refuse(
            f"weights are numbers, one for each sample, and {type(weights).__name__} is none of them "
            f"({why}); give a tensor or a list"
        ) from None
    if found.dim() != 1 or len(found) != samples:
        shape = "x".join(map(str, found.shape)) or "1"
        raise _refuse(
            f"there are {shape} weights for {samples} samples; give one for each sample, as in "
            "weight_of_class[labels]"
        )
    wrong = (~torch.isfinite(found) | (found < 0)).nonzero()
    if len(wrong):
        at = int(wrong[0])
        raise _refuse(
            f"the weight of sample {at} is {found[at].item()}; a weight is finite and at least 0"
        )
    if not bool((found > 0).any()):
        raise _refuse("all weights are 0, so there is nothing to draw")
    return found


class Drawing:
    """Draws the samples of one data set, with probabilities in proportion to their weights."""

    def __init__(self, weights: Any, samples: int) -> None:
        """Raises DataError(64) for invalid weights."""
        floats = _as_floats(weights, samples)
        # Powers of two scale exactly; two of them, since one may be larger than a float. A weight
        # that is tiny compared with the largest can still be drawn.
        _, exponent = math.frexp(float(floats.max()))
        scale = _BITS - samples.bit_length() - exponent
        first = scale // 2
        whole = floats.mul(2.0**first).mul_(2.0 ** (scale - first)).floor_().to(torch.int64)
        self._ends = whole.clamp_(min=1).mul_(floats > 0).cumsum(0)
        self._total = int(self._ends[-1])

    def hash(self) -> str:
        """A hash of everything that decides a draw."""
        size = self._ends.numel() * self._ends.element_size()
        digest = hashlib.blake2b(digest_size=16)
        digest.update((ctypes.c_uint8 * size).from_address(self._ends.data_ptr()))
        return f"{self._ends.numel()} weights, {digest.hexdigest()}"

    def draw(self, seed: int, epoch: int, positions: Sequence[int]) -> list[int]:
        """The samples at these positions."""
        key = epoch_key(seed, epoch, DRAW)
        places = [(mix(key ^ position) * self._total) >> 64 for position in positions]
        found = torch.tensor(places, dtype=torch.int64, device="cpu")
        return torch.searchsorted(self._ends, found, right=True).tolist()
