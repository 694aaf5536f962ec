"""Steps of slots that change buffers by rule, for tests of what a step makes of them."""

from __future__ import annotations

from typing import Any, Callable

import torch
from torch import nn, optim

from lockstep._buffers import Buffers, rules_of
from lockstep._state import Kept

SLOTS = 3


def kept_of(*buffers: tuple[str, torch.Tensor], **modules: nn.Module) -> Kept:
    model = nn.Linear(2, 2)
    for name, value in buffers:
        model.register_buffer(name, value, persistent=value.layout is torch.strided)
    kept = Kept()
    kept.keep(model=model, optimizer=optim.SGD(model.parameters(), 0.1), **modules)
    return kept


class Step:
    """A step of slots, each of which changes the model by a function of its number."""

    def __init__(self, kept: Kept, rules: dict[str, str], slots: int = SLOTS,
                 trial: Callable[[], Any] = lambda: None):
        """`trial`: what its slot does."""
        self.model, self.slots = kept.modules["model"], slots
        self.buffers = Buffers(kept.buffers, 1, rules_of(rules, kept.buffers, slots), slots)
        trial()
        self.names = self.buffers.settle()

    def take(self, slot_does: Callable[[Any, int], Any], present: int | None = None) -> None:
        """`present`: slots that have samples; None: all."""
        sent = []
        for slot in range(present or self.slots):
            self.buffers.restore()
            with torch.no_grad():
                slot_does(self.model, slot)
            self.buffers.check_unchanged()
            sent.append([floats.clone().view(-1) for floats in self.buffers.sent(slot)])
        # Computes means as the core does: sums of floats, divided by the number of slots.
        self.buffers.advance([sum(of_row[1:], of_row[0]) / len(sent) for of_row in zip(*sent)])
