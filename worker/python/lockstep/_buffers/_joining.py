"""How a step joins the values that its slots left in a buffer, and how they travel.

The core sums floats, exactly for whole numbers up to 2^24, and takes means of them. A value that
has to arrive bit for bit travels in pieces of 16 bits. Each piece is a float at the place of its
slot, where all other slots have zeros.
"""
from __future__ import annotations

import functools
from typing import Sequence

import torch

from .._state import in_memory, same_bits
from ._rules import MAX, MEAN, SUM


def joined(rule: str, before: torch.Tensor, values: Sequence[torch.Tensor]) -> torch.Tensor:
    """`values`: of all slots, in their order. A buffer that none has changed keeps its bits."""
    changed = [value for value in values if not same_bits(value, before)]
    if not changed:
        return before
    if rule == SUM:
        wide = torch.float64 if before.dtype.is_floating_point else torch.int64
        old = before.to(wide)
        return (old + _total([value.to(wide) - old for value in changed])).to(before.dtype)
    if rule == MEAN:
        return _total(values) / len(values)
    return functools.reduce(torch.maximum if rule == MAX else torch.minimum, values)


def _total(values: Sequence[torch.Tensor]) -> torch.Tensor:
    return functools.reduce(torch.add, values)


class Apart:
    """Values of tensors, by slot, as floats that the core averages over the slots."""

    def __init__(self, tensors: Sequence[torch.Tensor], slots: int):
        self._kinds = [(tensor.dtype, tensor.shape, tensor.numel() * tensor.element_size())
                       for tensor in tensors]
        pieces = (sum(size for _, _, size in self._kinds) + 1) // 2
        self._sent = torch.zeros(slots, 1 + pieces)  # the first float says that there is such a slot
        self._slot = 0

    @property
    def floats(self) -> int:
        return self._sent.numel()

    def of_slot(self, slot: int, tensors: Sequence[torch.Tensor]) -> torch.Tensor:
        """Valid until the next call."""
        self._sent[self._slot].zero_()
        self._slot = slot
        row = self._sent[slot]
        row[0] = 1
        parts = [in_memory(tensor).view(-1).view(torch.uint8) for tensor in tensors]
        size = sum(part.numel() for part in parts)
        whole = torch.cat([*parts, torch.zeros(size % 2, dtype=torch.uint8)]).view(torch.int16)
        row[1:] = whole.to(torch.int32).bitwise_and(0xFFFF)
        return self._sent

    def of_step(self, means: torch.Tensor) -> list[list[torch.Tensor]]:
        """For each tensor, the values of all slots, in their order."""
        rows = means.view(self._sent.shape)
        rows = rows[rows[:, 0] > 0]
        # A mean is off by a part in 2^24, and a piece is below 2^16.
        pieces = (rows[:, 1:].double() * len(rows)).round().to(torch.int32)
        found: list[list[torch.Tensor]] = [[] for _ in self._kinds]
        for row in pieces.to(torch.int16).view(torch.uint8):
            begin = 0
            for of_tensor, (dtype, shape, size) in zip(found, self._kinds):
                of_tensor.append(row[begin:begin + size].clone().view(dtype).view(shape))
                begin += size
        return found
