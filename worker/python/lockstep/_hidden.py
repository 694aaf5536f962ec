"""Tensors that modules hold and no state has: plain attributes, in which torchmetrics' metrics
count, and all tensors of modules that the script did not give to keep().

If a slot continues from such a tensor as the slot before left it (a mean so far, a queue), its
values differ between workers, since each computes other slots. The trial computes the same slot
twice: such a tensor has other values after the second time, while one that is only overwritten (a
cache, a mask) has the same.

Plain numbers of a torchmetrics metric show it, too: a maximum that two passes leave alike was still
counted twice.

The trial does not see such numbers of other modules, tensors outside of modules, and writes through
`.data` into large tensors.
"""
from __future__ import annotations

import gc
from typing import Any, Iterable, Iterator, NamedTuple

import torch
from torch import nn

from ._errors import Misuse
from ._state import Kept, numbers_of, same_bits
from ._waits import WAITS

_SMALL = 1 << 20  # bytes
_SECTIONS = ("_parameters", "_buffers", "_modules")  # among a module's attributes


class _Owner(NamedTuple):
    """Tensors by name: a module's parameters or buffers, or its attributes."""

    name: str  # for a message, with {} for the tensor's
    values: dict[str, Any]
    is_attributes: bool = True  # False: its parameters, or its buffers


class Hidden:
    """Watches the modules that exist when it is made. REQUIRES: keep() was called."""

    def __init__(self, kept: dict[str, nn.Module]):
        inside, others = [*_kept_modules(kept)], [*_other_modules(kept)]
        self._owners = [*(_Owner(name, module.__dict__) for name, module in inside), *_owners_of(others)]
        self._metrics = [(name, module) for name, module in inside + others if numbers_of(module)]
        self._numbers: list[dict[str, float]] = []
        self._before = [_versions_in(owner) for owner in self._owners]
        self._after: list[tuple[_Owner, str, list[torch.Tensor]]] | None = None

    def passed(self, who: str, remedy: str) -> None:
        """After a slot: notes the tensors that it may have written. After the same slot again:
        raises Misuse if it continued from the values that the first left."""
        if self._after is None:
            self._after = [(owner, key, [tensor.detach().clone() for tensor, _ in now])
                           for owner, before in zip(self._owners, self._before)
                           for key, now in _versions_in(owner).items()
                           if _are_small(now) or not _is_same(before.get(key, []), now)]
            self._numbers = [numbers_of(module) for _, module in self._metrics]
            return
        for owner, key, values in self._after:
            now = _tensors_of(owner.values.get(key))
            if len(now) != len(values) or not all(map(same_bits, now, values)):
                raise _went_on(who, owner.name.format(key), remedy)
        for (name, module), numbers in zip(self._metrics, self._numbers):
            moved = [key for key, value in numbers_of(module).items()
                     if repr(numbers.get(key)) != repr(value)]  # NaN is as it was, too
            if moved:
                raise _went_on(who, name.format(moved[0]), remedy)


class Unkept:
    """Finds parameters and buffers of modules that the script did not give to keep(), into which
    update= or after_step= writes: an average, for instance. A worker that joins makes its own,
    without the steps before it."""

    def __init__(self, kept: Kept):
        self._kept = kept

    def remember(self) -> None:
        self._owners = [owner for owner in _owners_of(_other_modules(self._kept.modules))
                        if not owner.is_attributes]
        self._before = [_versions_in(owner) for owner in self._owners]

    def say(self) -> None:
        """Reports one, on the terminal, too. No error: the script may keep this state elsewhere."""
        held = self._kept.holds()
        for owner, before in zip(self._owners, self._before):
            for key, now in _versions_in(owner).items():
                if not _is_same(before.get(key, []), now) and not any(
                        tensor.untyped_storage().data_ptr() in held for tensor, _ in now):
                    WAITS.say(f"update= or after_step= changes {owner.name.format(key)}, so a worker that "
                              "joins later, and a resume, begin with other values there; give the "
                              "module to run.keep() by a name of its own")
                    return


def _went_on(who: str, where: str, remedy: str) -> Misuse:
    return Misuse(f"{who} goes on with what the one before has left in {where}, which the run's state does "
                  f"not have, so each worker would have other values there; {remedy}")


def _kept_modules(kept: dict[str, nn.Module]) -> Iterator[tuple[str, nn.Module]]:
    """The kept modules, with names for messages, as in _Owner."""
    for name, module in kept.items():
        for path, part in module.named_modules(prefix="" if name == "model" else name):
            yield f"`{path}.{{}}`" if path else "`{}`", part


def _other_modules(kept: dict[str, nn.Module]) -> Iterator[tuple[str, nn.Module]]:
    inside = {id(part) for module in kept.values() for part in module.modules()}
    for found in gc.get_objects():
        if issubclass(type(found), nn.Module) and id(found) not in inside:
            yield f"`{{}}` of a {type(found).__qualname__} that run.keep() was not given", found


def _owners_of(others: Iterable[tuple[str, nn.Module]]) -> Iterator[_Owner]:
    for name, found in others:
        for values in (found.__dict__, *map(found.__dict__.get, _SECTIONS[:2])):
            if isinstance(values, dict):  # TorchScript's parameters are in none
                yield _Owner(name, values, values is found.__dict__)


def _versions_in(owner: _Owner) -> dict[str, list[tuple[torch.Tensor, int]]]:
    """Tensors and their versions, by name. Most writes change the version."""
    found = {key: _tensors_of(value) for key, value in owner.values.items() if key not in _SECTIONS}
    return {key: [(tensor, 0 if tensor.is_inference() else tensor._version) for tensor in tensors]
            for key, tensors in found.items() if tensors}


def _tensors_of(value: Any) -> list[torch.Tensor]:
    """A tensor, or the tensors in a list, tuple or dict, if their bits can be compared."""
    if isinstance(value, dict):
        value = list(value.values())
    found = value if isinstance(value, (list, tuple)) else [value]
    return [each for each in found
            if type(each) in (torch.Tensor, nn.Parameter) and not each.is_meta
            and each.layout is torch.strided and not each.is_quantized and not each.is_conj()]


def _are_small(tensors: list[tuple[torch.Tensor, int]]) -> bool:
    """Small tensors are compared by bits, since batch norms write without changing the version."""
    return sum(tensor.numel() * tensor.element_size() for tensor, _ in tensors) <= _SMALL


def _is_same(a: list[tuple[torch.Tensor, int]], b: list[tuple[torch.Tensor, int]]) -> bool:
    return len(a) == len(b) and all(x[0] is y[0] and x[1] == y[1] for x, y in zip(a, b))
