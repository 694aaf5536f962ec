"""Buffers of the model, which slots change: joined by rule where they do, watched where they do not.

    rule     of which buffers                                       a step makes of it
    ruled    those that the script gave a rule by name, and parts   what the rule says (_ruled.py)
             of fake quantisation
    norms    running_mean, running_var of batch and instance norms  the mean over its slots
             num_batches_tracked of these                           more by what each slot adds
    alike    float32 that every slot changes to the same            that
             (spectral norm's), or that has one slot a step
    caches   non-persistent ones that a slot makes longer, or       nothing: each process has its own
             shorter, with the same values where both reach

Any other change ends the run, which names the buffer: each slot begins with the buffers that the
step before left, so no slot's value stands for the changes of several slots.

Each phase of a loop (_phases.py) may change other buffers. Buffers that the slots of a phase leave
alone keep their values in its steps.

Every slot begins with the buffers of the last step. Large buffers are not copied: a write by a slot
moves the buffer's version, and on check steps a hash of its bits shows any write.
"""
from __future__ import annotations

import ctypes
import hashlib
from typing import Any, Mapping, Sequence

import torch
from torch.nn.modules.batchnorm import _NormBase
from torch.nn.utils import parametrizations
from torch.nn.utils.spectral_norm import SpectralNorm

from .._errors import Misuse
from .._state import in_memory, same_bits
from ._quantisation import quantisation_rules
from ._ruled import Ruled
from ._rules import advice_for

_SMALL = 1 << 20  # bytes
_ROUNDING = 1e-5  # how far the mean of equal numbers may be from them
_MEAN, _COUNTER, _ALIKE = "mean", "counter", "alike"  # rules
_OF_NORMS = ("running_mean", "running_var", "num_batches_tracked")


class Buffers:
    """REQUIRES: settle() after the trial's first slot of each turn, before anything else. `turn`:
    of the slot or step in progress. `rules`: from rules_of()."""

    def __init__(self, buffers: list[Any], turns: int = 1, rules: Mapping[str, str] | None = None,
                 slots: int = 1):
        rules = {**quantisation_rules(buffers), **(rules or {})}
        self._ruled = Ruled(buffers, rules, slots)
        self._all = [b for b in buffers if b.name not in rules]
        self.turn = 0
        self._unsettled = turns
        self._moved: list[set[str]] = [set() for _ in range(turns)]  # by turn: what its slots change
        self._rules: dict[str, str] = {}  # for each buffer that any slot changes
        self._before = {b.name: b.get().detach().clone() for b in buffers if _has_bits(b.get())}
        for buffer in self._ruled.buffers:  # so was_reset() tells of the trial's first slot, too
            buffer.put_back(self._before[buffer.name])
        self._versions = {b.name: _version_of(b.get()) for b in buffers}
        self.statistics: list[Any] = []  # floats: averaged over the slots of a step
        self.alike: list[Any] = []       # a part of them: the mean is right only if all slots agree
        self.counters: list[Any] = []    # of norms: grow by a number in a slot, and by it in a step
        self._growth: list[dict[str, int]] = [{} for _ in range(turns)]
        # The values of `alike` that a slot of this step left, by turn and name.
        self._values: dict[tuple[int, str], torch.Tensor] = {}
        self._unlike: str | None = None
        self._of_trained_norms: set[str] = set()  # of batch norms in train() between the trial's slots
        self._watched: list[Any] = []    # small ones that the trial saw unchanged
        self._large: list[Any] = []      # others, and sparse ones
        self._rewritten: set[str] = set()  # a part of them: the trial wrote their old values again
        self._hashes: dict[str, bytes] = {}

    def settle(self) -> list[str]:
        """After the first slot of a turn in the trial: notes which buffers it changes. After the
        last turn's, returns the names of all buffers that any turn changes."""
        self._ruled.check_slot(self._before)
        for buffer in self._all:
            now, before = buffer.get(), self._before.get(buffer.name)
            is_rewritten = not _is_same(_version_of(now), self._versions[buffer.name])
            rule = self._rule_of(buffer, before, now, is_rewritten)
            if rule:
                self._moved[self.turn].add(buffer.name)
                self._rules[buffer.name] = rule
            elif is_rewritten and now.shape == self._versions[buffer.name][0].shape:
                self._rewritten.add(buffer.name)
        self._unsettled -= 1
        if self._unsettled:
            self._put_back()
            return []
        return self._settled()

    def _rule_of(self, buffer: Any, before: torch.Tensor | None, now: torch.Tensor,
                 is_rewritten: bool) -> str:
        """The rule by which a step joins the slots' values. Empty: this slot changed nothing."""
        is_same = before is not None and same_bits(before, now)
        if is_same and is_rewritten and _is_of_spectral_norm(buffer):
            return _ALIKE  # it had converged, and moves with the weights
        if is_same or before is None and not is_rewritten or _is_cache(buffer, before, now):
            return ""
        if before is not None and now.dtype == torch.float32 and now.shape == before.shape:
            return _MEAN if _is_of_norm(buffer) else _ALIKE
        if _is_of_norm(buffer) and before is not None and (growth := _growth_of(before, now)):
            self._growth[self.turn][buffer.name] = growth
            return _COUNTER
        raise _without_rule(buffer)

    def _settled(self) -> list[str]:
        for buffer in self._all:
            rule = self._rules.get(buffer.name)
            if rule is None:
                self._watch(buffer, buffer.get())
            elif rule == _COUNTER:
                self.counters.append(buffer)
            else:
                self.statistics.append(buffer)
                if rule == _ALIKE:
                    self.alike.append(buffer)
        changing = self.statistics + self.counters
        self._of_trained_norms = {b.name for b in changing
                                  if isinstance(b.module, _NormBase) and b.module.training}
        self._before = {**{b.name: self._before[b.name] for b in self._moving()},
                        **{b.name: _copy_of(b) for b in self._watched}}
        self._note_versions()
        return [b.name for b in self._moving()]

    def _moving(self) -> list[Any]:
        """The buffers that slots change and a step joins."""
        return [*self.statistics, *self.counters, *self._ruled.buffers]

    def values(self) -> dict[str, torch.Tensor]:
        """Copies of the values that a slot left in the buffers that a step joins."""
        return {b.name: _copy_of(b) for b in self._moving()}

    def rows(self) -> list[tuple[str, Sequence[int]]]:
        """The floats that the core averages over the slots: names for messages, and shapes."""
        return [*((b.name, b.get().shape) for b in self.statistics), *self._ruled.rows()]

    def sent(self, slot: int) -> list[torch.Tensor]:
        """The slot's values for rows(): contiguous, and valid until the next call."""
        return [*(in_memory(b.get()) for b in self.statistics), *self._ruled.sent(slot, self._before)]

    @torch.no_grad()
    def _put_back(self) -> None:
        """Undoes the changes of a turn's first slot before the next turn's begins."""
        moved = [b for b in self._all if b.name in self._moved[self.turn]]
        for buffer in moved + self._ruled.buffers:
            buffer.put_back(self._before[buffer.name])
        self._versions = {b.name: _version_of(b.get()) for b in self._all}

    def _moves(self, buffer: Any) -> bool:
        return buffer.name in self._moved[self.turn]

    def check_alike(self, is_other: bool) -> None:
        """After two slots of the trial: raises Misuse if they left different values in a buffer
        whose rule wants the same from all slots. `is_other`: the second one had other samples."""
        for buffer in filter(self._moves, self.alike):
            key, now = (self.turn, buffer.name), buffer.get().detach().clone()
            if is_other and not same_bits(self._values[key], now):
                raise _without_rule(buffer)
            self._values[key] = now

    def forget_alike(self) -> None:
        """The next slot belongs to another step."""
        self._values = {}

    @torch.no_grad()
    def restore(self) -> None:
        for buffer in self._moving():
            buffer.put_back(self._before[buffer.name])
        self._note_versions()

    def remember(self) -> None:
        """Before a slot of the trial or of a check step: notes the hashes of large buffers."""
        self._hashes = {b.name: _hash_of(b.get()) for b in self._large if _has_bits(b.get())}

    def name_of_changed(self) -> str | None:
        """The name of a small buffer that has changed now, and that the trial's slot left alone."""
        still = [b for b in self.statistics if not self._moves(b)]
        for buffer in still + list(self._watched):
            before, now = self._before[buffer.name], buffer.get()
            if same_bits(before, now):
                continue
            if buffer in still or not _is_cache(buffer, before, now):
                return buffer.name
            self._watched.remove(buffer)
            self._watch(buffer, now)
            self._before[buffer.name] = _copy_of(buffer)
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
            if not is_changed:
                continue
            before, version = self._versions[name]
            is_before = before is not now and _version_of(before)[1] == version
            if not is_before or not _is_cache(buffer, before, now):
                return name
            self._versions[name] = _version_of(now)
        return None

    def check_unchanged(self) -> None:
        """After a slot: raises Misuse if it changed a buffer against its rule."""
        name = self.name_of_changed() or self._name_of_changed_large()
        if name is not None:
            buffer = next(b for b in self._all if b.name == name)
            raise Misuse(f"a slot changed the buffer {name}, which the trial's slot did not: what a "
                         "slot changes must not depend on the step, unless the buffer has a rule: "
                         + advice_for(buffer))
        self._ruled.check_slot(self._before)
        for buffer in self.counters:
            growth = self._growth_in(buffer)
            if not torch.equal(self._before[buffer.name] + growth, buffer.get()):
                raise Misuse(f"a slot raised the buffer {buffer.name} from "
                             f"{_shown(self._before[buffer.name])} to {_shown(buffer.get())}, and the "
                             f"trial's slot raised it by {growth}: let every slot "
                             "call its module equally often, or give the buffer the rule sum "
                             f"(run.keep(buffers={{\"{buffer.name}\": \"sum\"}}))")
        for buffer in filter(self._moves, self.alike):
            key, now = (self.turn, buffer.name), buffer.get()
            known = self._values.get(key)
            if buffer.name == self._unlike or known is not None and not same_bits(known, now):
                raise _without_rule(buffer)
            self._values[key] = now.detach().clone()

    @torch.no_grad()
    def advance(self, means: list[torch.Tensor]) -> None:
        """A step is applied: `means` of rows() over its slots."""
        for buffer, mean in zip(self.statistics, means):
            if self._moves(buffer) and not self._rests(buffer):
                self._before[buffer.name].copy_(mean.view(buffer.get().shape))
        self._compare_means()
        for buffer in self.counters:
            self._before[buffer.name] += self._growth_in(buffer)
        changed = self._ruled.join(self._before, means[len(self.statistics):])
        self.restore()
        self._ruled.derive(self._before, changed)

    def has_one_slot(self) -> None:
        """A step has a single slot, so the slot's value of a buffer is the step's."""
        self.alike = []

    def _compare_means(self) -> None:
        """The mean over all slots must equal this process's slot, except for rounding: else slots
        of other workers left other values. The next slot says so."""
        values, self._values = self._values, {}
        for buffer in self.alike:
            value, mean = values.get((self.turn, buffer.name)), self._before[buffer.name]
            if value is not None and not torch.allclose(value, mean, rtol=_ROUNDING, atol=float(
                    _ROUNDING * value.abs().max()) if value.numel() else 0.0, equal_nan=True):
                self._unlike = buffer.name

    def adopt(self) -> None:
        """Another state was installed."""
        self._values = {}
        for buffer in self._moving() + self._watched:
            self._before[buffer.name] = _copy_of(buffer)
        self._note_versions()

    def _watch(self, buffer: Any, now: torch.Tensor) -> None:
        is_small = _has_bits(now) and now.numel() * now.element_size() <= _SMALL
        (self._watched if is_small else self._large).append(buffer)

    def _growth_in(self, buffer: Any) -> int:
        """How much a slot, and a step, of this turn adds to a counter."""
        return 0 if self._rests(buffer) else self._growth[self.turn].get(buffer.name, 0)

    def _rests(self, buffer: Any) -> bool:
        """True for a batch norm that was frozen after the trial: no slot changes it, and the mean
        of equal numbers may differ from them. (A body may set train() itself, so the mode between
        slots says nothing.)"""
        return buffer.name in self._of_trained_norms and not buffer.module.training

    def _note_versions(self) -> None:
        """Resets versions for the next slot, and drops the hashes of an aborted slot."""
        self._hashes = {}
        self._versions = {b.name: _version_of(b.get()) for b in self._large}


def _is_of_norm(buffer: Any) -> bool:
    return isinstance(buffer.module, _NormBase) and buffer.local in _OF_NORMS


def _is_of_spectral_norm(buffer: Any) -> bool:
    if isinstance(buffer.module, parametrizations._SpectralNorm):
        return buffer.local in ("_u", "_v")
    return any(isinstance(hook, SpectralNorm) and buffer.local in (f"{hook.name}_u", f"{hook.name}_v")
               for hook in buffer.module._forward_pre_hooks.values())


def _is_cache(buffer: Any, before: torch.Tensor | None, now: torch.Tensor) -> bool:
    """Whether `now` is `before` with another length. A cache that follows from lengths alone is
    (rotary embeddings, masks): each slot finds the values there that it would compute."""
    if buffer.persistent or before is None or now.shape == before.shape or \
            now.dtype != before.dtype or now.dim() != before.dim() or \
            not (_has_bits(now) and _has_bits(before)):
        return False
    both = tuple(slice(min(pair)) for pair in zip(before.shape, now.shape))
    return same_bits(before[both], now[both])


def _copy_of(buffer: Any) -> torch.Tensor:
    return buffer.get().detach().clone()


def _without_rule(buffer: Any) -> Misuse:
    return Misuse(f"a slot changes the buffer {buffer.name} ({buffer.get().dtype}), and nothing says what "
                  "a step makes of the values that its slots leave there. Give the buffer a rule: "
                  f"{advice_for(buffer)}; where it follows from other buffers, compute it from them in "
                  "run.keep(after_step=...). Without a rule a slot may change running_mean, running_var and "
                  "num_batches_tracked of torch's batch and instance norms, float32 buffers that every "
                  "slot changes to the same values (spectral norm's), and a non-persistent buffer's "
                  "length")


def _shown(tensor: torch.Tensor) -> str:
    return str(tensor.item()) if tensor.numel() == 1 else str(tensor.flatten()[:4].tolist())


def _has_bits(tensor: torch.Tensor) -> bool:
    """False for a sparse tensor, which has no memory to compare."""
    return tensor.layout is torch.strided


def _growth_of(before: torch.Tensor, now: torch.Tensor) -> int:
    """How much every number of a counter has grown; 0: this is no counter."""
    if now.dtype != torch.int64 or now.shape != before.shape:
        return 0
    growth = int((now - before).flatten()[0])
    return growth if growth > 0 and torch.equal(now, before + growth) else 0


def _version_of(tensor: torch.Tensor) -> tuple[torch.Tensor, int]:
    """Changes with every write, except through `.data` and numpy(), and with every replacement."""
    return tensor, 0 if tensor.is_inference() else tensor._version


def _is_same(a: tuple[torch.Tensor, int], b: tuple[torch.Tensor, int]) -> bool:
    return a[0] is b[0] and a[1] == b[1]


def _hash_of(tensor: torch.Tensor) -> bytes:
    plain = in_memory(tensor)
    size = plain.numel() * plain.element_size()
    memory = (ctypes.c_uint8 * size).from_address(plain.data_ptr()) if size else b""
    return hashlib.blake2b(memory, digest_size=16).digest()
