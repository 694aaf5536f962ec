"""The rules that run.keep(buffers=...) gives, by names with wildcards, and the rules that states of
metrics have from the start.

    sum        the value before, and what each slot added to it
    max, min   over the values that the slots left, element by element
    mean       of the values that the slots left; floats only
"""
from __future__ import annotations

import fnmatch
import hashlib
from typing import Any, Mapping, Sequence

import torch

from .._errors import Misuse
from .._state import why_not

MEAN, SUM, MAX, MIN = "mean", "sum", "max", "min"
_RULES = (SUM, MAX, MIN, MEAN)
_MOST_APART = 1 << 26  # bytes of a slot's share of the gradient buffer
_MOST_NAMES = 8  # in a message


def rules_of(given: Mapping[str, str], buffers: Sequence[Any], slots: int) -> dict[str, str]:
    """The rule of each buffer, by name: its own, else the rule of the first pattern that fits it.
    Raises Misuse for an unknown rule, a pattern that fits no buffer, and a buffer that its rule
    cannot join."""
    if not isinstance(given, Mapping) or not all(isinstance(key, str) for key in given):
        raise Misuse('keep(buffers=...) takes rules by names of buffers, as {"seen": "sum"}')
    names = [buffer.name for buffer in buffers if buffer.rule is None]
    for pattern, rule in given.items():
        if rule not in _RULES:
            raise Misuse(f"keep(buffers=...) gives {pattern!r} the rule {rule!r}; the rules are sum, "
                         "max, min and mean")
        if not fnmatch.filter(names, pattern):
            shown = ", ".join(names[:_MOST_NAMES]) + (", …" if len(names) > _MOST_NAMES else "")
            raise Misuse(f"keep(buffers=...) gives a rule for {pattern!r}, and no kept buffer has such a "
                         f"name; there are: {shown or 'none'}")
    found = {}
    for buffer in buffers:
        rule = buffer.rule or next((rule for pattern, rule in given.items()
                                    if fnmatch.fnmatchcase(buffer.name, pattern)), None)
        if rule is not None:
            _check(buffer, rule)
            found[buffer.name] = rule
    _check_size([b for b in buffers if is_apart(b, found.get(b.name))], slots)
    return found


def identity_of(rules: Mapping[str, str]) -> list[tuple[str, str]]:
    """The script's rules as a part of the run's identity: with others it would train otherwise."""
    if not rules:
        return []
    text = ", ".join(f"{name}: {rule}" for name, rule in sorted(rules.items()))
    if len(text) > 160:
        text = f"{len(rules)} rules, {hashlib.sha256(text.encode()).hexdigest()[:16]}"
    return [("keep.buffers", text)]


def is_apart(buffer: Any, rule: str | None) -> bool:
    """Whether each slot's value travels by itself, and not in a sum of floats."""
    return rule in (SUM, MAX, MIN) or rule == MEAN and buffer.get().dtype == torch.float64


def advice_for(buffer: Any) -> str:
    """The rules that would fit, as words for a message."""
    dtype = buffer.get().dtype
    fitting = (MAX, MIN) if dtype == torch.bool else \
        (MEAN, SUM, MAX, MIN) if dtype.is_floating_point else (SUM, MAX, MIN)
    return f'run.keep(buffers={{"{buffer.name}": "{fitting[0]}"}}), or one of the rules ' \
        f'{", ".join(fitting[1:])}'


def _check(buffer: Any, rule: str) -> None:
    dtype = buffer.get().dtype
    why = why_not(buffer.get())
    if why:
        raise Misuse(f"keep(buffers=...) gives {buffer.name} the rule {rule}, and it is {why}")
    if buffer.rule is None and (rule == MEAN and not dtype.is_floating_point
                                or rule == SUM and dtype == torch.bool):
        raise Misuse(f"keep(buffers=...) gives {buffer.name} the rule {rule}, which numbers of {dtype} "
                     f"do not have; take {advice_for(buffer)}")


def _check_size(apart: Sequence[Any], slots: int) -> None:
    size = sum(b.get().numel() * b.get().element_size() for b in apart)
    if size * 2 * slots <= _MOST_APART:
        return
    largest = max(apart, key=lambda b: b.get().numel() * b.get().element_size())
    instead = "give large ones the rule mean" if largest.rule is None else "keep no metric of that size"
    raise Misuse(f"the buffers with the rules sum, max and min, {largest.name} above all, have {size} "
                 f"bytes; they travel {slots} times, once for each slot, and may have at most "
                 f"{_MOST_APART // (2 * slots)}: {instead}, or take fewer slots")
