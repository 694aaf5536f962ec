"""Buffers that have a rule by name: from run.keep(buffers=...), or as parts of fake quantisation."""
from __future__ import annotations

from typing import Any, Mapping, Sequence

import torch

from .._errors import Misuse
from .._state import in_memory, same_bits
from ._joining import Apart, joined
from ._quantisation import DERIVED, Derived
from ._rules import is_apart


class Ruled:
    """`before`, in every call: by name, the values that the slots of a step begin with.

    Floats with the rule mean travel like the statistics of norms, together with a float that says
    whether the slot changed them: the mean of equal numbers may be another number. All others
    travel slot by slot.
    """

    def __init__(self, buffers: Sequence[Any], rules: Mapping[str, str], slots: int):
        self.buffers = [b for b in buffers if b.name in rules]
        self._rules = rules
        sent = [b for b in self.buffers if rules[b.name] != DERIVED]
        self._means = [b for b in sent if not is_apart(b, rules[b.name])]
        self._slot_by_slot = [b for b in sent if is_apart(b, rules[b.name])]
        self._apart = Apart([b.get() for b in self._slot_by_slot], slots)
        self._derived = Derived([b for b in self.buffers if rules[b.name] == DERIVED],
                                self.buffers)

    def rows(self) -> list[tuple[str, Sequence[int]]]:
        """The floats that travel: names for messages, and shapes."""
        rows: list[tuple[str, Sequence[int]]] = [(b.name, (b.get().numel() + 1,)) for b in self._means]
        if self._slot_by_slot:
            rows.append(("buffers by rule", (self._apart.floats,)))
        return rows

    def sent(self, slot: int, before: Mapping[str, torch.Tensor]) -> list[torch.Tensor]:
        """The slot's values for rows()."""
        rows = [_with_change(before[b.name], b.get().detach()) for b in self._means]
        if self._slot_by_slot:
            rows.append(self._apart.of_slot(slot, [b.get() for b in self._slot_by_slot]))
        return rows

    @torch.no_grad()
    def join(self, before: dict[str, torch.Tensor], means: Sequence[torch.Tensor]) -> set[str]:
        """A step is applied: `means` of rows() over its slots. Writes into `before`, and gives the names
        of the buffers that have changed."""
        # Join on the CPU, where the core's means are, even if the buffer lies on a device.
        old = {b.name: before[b.name].cpu() for b in [*self._means, *self._slot_by_slot]}
        now = {}
        for buffer, mean in zip(self._means, means):
            now[buffer.name] = _of_mean(old[buffer.name], mean)
        if self._slot_by_slot:
            for buffer, values in zip(self._slot_by_slot, self._apart.of_step(means[-1])):
                now[buffer.name] = joined(self._rules[buffer.name], old[buffer.name], values)
        changed = {name for name, value in now.items() if not same_bits(before[name], value)}
        for name in changed:
            before[name].copy_(now[name])
        return changed

    def derive(self, before: dict[str, torch.Tensor], changed: set[str]) -> None:
        """After join(), when the buffers have the values of `before`."""
        self._derived.follow(before, changed)

    def check_slot(self, before: Mapping[str, torch.Tensor]) -> None:
        """After a slot: raises Misuse where a buffer has another shape or dtype, or was reset."""
        for buffer in self.buffers:
            now, was = buffer.get(), before[buffer.name]
            if now.shape != was.shape or now.dtype != was.dtype:
                raise Misuse(f"a slot makes the buffer {buffer.name} {now.dtype} {tuple(now.shape)}, and "
                             f"it was {was.dtype} {tuple(was.shape)}: its rule joins values of one kind; "
                             + buffer.remedy)
            if buffer.was_reset():
                raise Misuse(f"a slot resets the metric of {buffer.name}, which counts over all slots of "
                             "a step: reset it in run.keep(after_step=...) or between two epochs; or do "
                             "not keep it, reset it before each use, and give its value to "
                             "run.backward(metrics=...)")


def _with_change(before: torch.Tensor, now: torch.Tensor) -> torch.Tensor:
    """The values, and 1; zeros if the slot has left the buffer as it was."""
    if same_bits(before, now):
        return torch.zeros(now.numel() + 1)
    return torch.cat([in_memory(now).view(-1).float(), torch.ones(1)])


def _of_mean(before: torch.Tensor, mean: torch.Tensor) -> torch.Tensor:
    values, share = mean[:-1].view(before.shape), float(mean[-1])  # of the slots that changed it
    if share == 0:
        return before
    if share < 1:
        values = values + (1 - share) * before.float()
    return values.to(before.dtype)
