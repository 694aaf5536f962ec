"""Buffers of the model, which slots change: averaged or counted where they do, watched where they do not.

Every slot begins with the buffers of the last step. Of large ones no copy is kept: a slot that writes
into one moves its version, and on check steps a hash of its bits shows any write.
"""
from __future__ import annotations

import ctypes
import hashlib
from typing import Any

import torch
from torch.nn.modules.batchnorm import _NormBase

from ._errors import Misuse
from ._state import in_memory, same_bits

_SMALL = 1 << 20  # bytes


class Buffers:
    """REQUIRES: settle() after the trial's first slot, before anything else."""

    def __init__(self, buffers: list[Any]):
        self._all = buffers
        self._before = {b.name: b.get().detach().clone() for b in buffers if _has_bits(b.get())}
        self._versions = {b.name: _version_of(b.get()) for b in buffers}
        self.statistics: list[Any] = []  # floats: averaged over the slots of a step
        self.counters: list[Any] = []    # int64 that grow by a number in a slot: by it in a step
        self._growth: dict[str, int] = {}
        self._of_trained_norms: set[str] = set()  # of batch norms in train() between the trial's slots
        self._watched: list[Any] = []    # small ones that the trial saw unchanged
        self._large: list[Any] = []      # others, and sparse ones
        self._rewritten: set[str] = set()  # of these, those to which the trial wrote what they were
        self._hashes: dict[str, bytes] = {}

    def settle(self) -> list[str]:
        """After the trial's first slot: which buffers it changes. The names of all of them."""
        for buffer in self._all:
            now, before = buffer.get(), self._before.get(buffer.name)
            is_rewritten = not _is_same(_version_of(now), self._versions[buffer.name])
            if before is None and not is_rewritten or before is not None and same_bits(before, now):
                self._watch(buffer, now, is_rewritten)
            elif before is not None and now.dtype == torch.float32 and now.shape == before.shape:
                self.statistics.append(buffer)
            elif before is not None and (growth := _growth_of(before, now)):
                self.counters.append(buffer)
                self._growth[buffer.name] = growth
            else:
                raise Misuse(f"a slot changes the buffer {buffer.name} ({now.dtype}), which Lockstep "
                             "can neither average (float32) nor count (int64, all numbers by the "
                             "same); take it out of the model, or change it in "
                             "run.keep(after_step=...)")
        changing = self.statistics + self.counters
        self._of_trained_norms = {b.name for b in changing
                                  if isinstance(b.module, _NormBase) and b.module.training}
        self._before = {b.name: self._before[b.name] for b in changing + self._watched}
        self._note_versions()
        return [b.name for b in changing]

    @torch.no_grad()
    def restore(self) -> None:
        for buffer in self.statistics + self.counters:
            buffer.get().copy_(self._before[buffer.name])
        self._note_versions()

    def remember(self) -> None:
        """Before a slot that is looked at closely: large buffers are compared by their bits, too."""
        self._hashes = {b.name: _hash_of(b.get()) for b in self._large if _has_bits(b.get())}

    def name_of_changed(self) -> str | None:
        """A small buffer that the trial's slot has left as it was, and that is another now."""
        for buffer in self._watched:
            if not same_bits(self._before[buffer.name], buffer.get()):
                return buffer.name
        return None

    def _name_of_changed_large(self) -> str | None:
        hashes, self._hashes = self._hashes, {}
        for buffer in self._large:
            name, now = buffer.name, buffer.get()
            if name in hashes:
                is_changed = not _has_bits(now) or hashes[name] != _hash_of(now)
            else:
                is_changed = name not in self._rewritten and not _is_same(
                    _version_of(now), self._versions[name])
            if is_changed:
                return name
        return None

    def check_unchanged(self) -> None:
        name = self.name_of_changed() or self._name_of_changed_large()
        if name is not None:
            raise Misuse(f"a slot changed the buffer {name}, which the trial's slot did not: what a "
                         "slot changes must not depend on the step")

    @torch.no_grad()
    def advance(self, means: list[torch.Tensor]) -> None:
        """A step is applied: `means` of the statistics over its slots."""
        for buffer, mean in zip(self.statistics, means):
            if not self._rests(buffer):
                self._before[buffer.name].copy_(mean.view(buffer.get().shape))
        for buffer in self.counters:
            if not self._rests(buffer):
                self._before[buffer.name] += self._growth[buffer.name]
        self.restore()

    def adopt(self) -> None:
        """Another state was installed."""
        for buffer in self.statistics + self.counters + self._watched:
            self._before[buffer.name] = buffer.get().detach().clone()
        self._note_versions()

    def _watch(self, buffer: Any, now: torch.Tensor, is_rewritten: bool) -> None:
        if _has_bits(now) and now.numel() * now.element_size() <= _SMALL:
            self._watched.append(buffer)
            return
        self._large.append(buffer)
        if is_rewritten:
            self._rewritten.add(buffer.name)

    def _rests(self, buffer: Any) -> bool:
        """No slot changes it: a batch norm that was frozen since the trial. A mean of equal numbers may
        be another one. (A body may set train() for itself, and the mode between slots says nothing.)"""
        return buffer.name in self._of_trained_norms and not buffer.module.training

    def _note_versions(self) -> None:
        """What the next slot begins with. Hashes of one that was broken off count no more."""
        self._hashes = {}
        self._versions = {b.name: _version_of(b.get()) for b in self._large}


def _has_bits(tensor: torch.Tensor) -> bool:
    """False: it is sparse, and has no memory that could be compared."""
    return tensor.layout is torch.strided


def _growth_of(before: torch.Tensor, now: torch.Tensor) -> int:
    """By how much every number of a counter has grown; 0: this is no counter."""
    if now.dtype != torch.int64 or now.shape != before.shape:
        return 0
    growth = int((now - before).flatten()[0])
    return growth if growth > 0 and torch.equal(now, before + growth) else 0


def _version_of(tensor: torch.Tensor) -> tuple[torch.Tensor, int]:
    """Another one after every write but those through `.data` and numpy(), or where it was replaced."""
    return tensor, 0 if tensor.is_inference() else tensor._version


def _is_same(a: tuple[torch.Tensor, int], b: tuple[torch.Tensor, int]) -> bool:
    return a[0] is b[0] and a[1] == b[1]


def _hash_of(tensor: torch.Tensor) -> bytes:
    plain = in_memory(tensor)
    size = plain.numel() * plain.element_size()
    memory = (ctypes.c_uint8 * size).from_address(plain.data_ptr()) if size else b""
    return hashlib.blake2b(memory, digest_size=16).digest()
