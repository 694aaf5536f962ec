"""Limits on what a script does to the state: its loop's body may not write into it, and no part of
the script may change its composition.

Each worker computes other slots, so values that a body writes would differ between workers. The
process that installs a checkpoint is new: its script has only built what it builds before the loop.
"""

from __future__ import annotations

from itertools import chain
from operator import attrgetter
from typing import Any, Iterable, Optional

from torch import Tensor
from torch.optim import Optimizer

from ._errors import MisuseError
from ._named import NamedBuffer, NamedParameter
from ._objects import decode, encode
from ._tensors import Entry, Kind, kind_of, same_bits, words_of

_OBJECTS = ("optimizer", "objects")
_VERSION = attrgetter("_version")
_MOST_COPIED = 4  # bytes of frozen parameters for one that is trained: averages have one or two


class ReadOnly:
    """Sees what a loop's body writes into parameters, averages and the optimizers' tensors.

    Every write moves a tensor's version, except one through `.data` or numpy(). remember() and
    compare() see these, too, and writes into other kept objects, for the price of a copy. They do
    not copy the optimizers' tensors, since there might be no room. The body may write into buffers.
    """

    def __init__(self, trained: list[NamedParameter], frozen: list[NamedParameter],
                 optimizers: dict[str, Optimizer]) -> None:
        self._parameters = [*trained, *frozen]
        self._tensors = [p.tensor for p in self._parameters]
        self._optimizers = optimizers
        # A frozen model with a small adapter is not copied, either.
        is_large = _bytes_of(frozen) > _MOST_COPIED * _bytes_of(trained)
        self._not_copied = {p.name for p in frozen} if is_large else set()
        self._before: Optional[dict[tuple[str, str], Tensor]] = None
        self.note()

    def note(self) -> None:
        """Notes the state as it is now."""
        self._states = [value for optimizer in self._optimizers.values()
                        for value in _tensors_of(optimizer)]
        self._versions = self._versions_now()

    def check(self) -> None:
        """Raises MisuseError if a tensor was written into since note()."""
        now = self._versions_now()
        if now == self._versions:
            return
        at = next(i for i, pair in enumerate(zip(now, self._versions)) if pair[0] != pair[1])
        if at < len(self._parameters):
            raise _written(f"the parameter `{self._parameters[at].name}`")
        written = self._states[at - len(self._parameters)]
        name = next((name for name, optimizer in self._optimizers.items()
                     if any(value is written for value in _tensors_of(optimizer))), "optimizer")
        raise _written(f"the state of `{name}`")

    def remember(self, entries: Iterable[Entry]) -> None:
        """Keeps a copy of the state before a slot."""
        self._before = {key: tensor.clone() for key, tensor in self._compared(entries)}

    def compare(self, entries: Iterable[Entry], who: str) -> None:
        """After the slot: raises MisuseError unless the state has the same bits."""
        before, self._before = self._before or {}, None
        for key, tensor in self._compared(entries):
            if key not in before or not (same_bits(before[key], tensor)
                                         or key == _OBJECTS and _are_alike(before[key], tensor)):
                raise _written(_name_of(key, before.get(key), tensor), who)

    def _compared(self, entries: Iterable[Entry]) -> Iterable[tuple[tuple[str, str], Tensor]]:
        states = {id(tensor) for tensor in self._states}
        for e in entries:
            if (e.section != "buffer" and e.name not in self._not_copied
                    and id(e.tensor) not in states):
                yield (e.section, e.name), e.tensor

    def _versions_now(self) -> list[int]:
        return [*map(_VERSION, self._tensors), *map(_VERSION, self._states)]


class Layout:
    """The composition of the state."""

    def __init__(self, parameters: dict[str, Tensor], buffers: list[NamedBuffer],
                 optimizers: dict[str, Optimizer]) -> None:
        self._parameters = parameters
        self._buffers = buffers
        self._optimizers = optimizers
        self._kinds = self._kinds_now()
        self._groups = self._groups_now()

    def check(self) -> None:
        """Raises MisuseError if a shape, a dtype or a group of parameters has changed."""
        kinds = self._kinds_now()
        for name, before in self._kinds.items():
            if kinds[name] != before:
                how = "change the model before" if name in self._parameters else \
                    next(b.remedy for b in self._buffers if b.name == name)
                raise MisuseError(f"`{name}` was {words_of(before)} at run.keep() and is "
                                  f"{words_of(kinds[name])} now, so no checkpoint could be resumed; "
                                  f"{how}.")
        for name, groups in self._groups_now().items():
            if groups != self._groups[name]:
                raise MisuseError(f"The groups of parameters of `{name}` were changed after "
                                  "run.keep(), so no checkpoint could be resumed; make them "
                                  "before, and freeze what waits, by requires_grad_(False).")

    def _kinds_now(self) -> dict[str, Kind]:
        kinds = {name: kind_of(p) for name, p in self._parameters.items()}
        kinds.update((b.name, kind_of(b.get())) for b in self._buffers if b.persistent)
        return kinds

    def _groups_now(self) -> dict[str, list[list[int]]]:
        return {name: [[id(p) for p in group["params"]] for group in optimizer.param_groups]
                for name, optimizer in self._optimizers.items()}


def _tensors_of(optimizer: Optimizer) -> list[Tensor]:
    """The tensors that its state has now: an optimizer may replace them in every step. This runs
    once a step over thousands of parameters, so the loops are the interpreter's own."""
    values = chain.from_iterable(map(dict.values, (kept for kept in optimizer.state.values()
                                                   if isinstance(kept, dict))))
    return [value for value in values if isinstance(value, Tensor)]


def _bytes_of(parameters: list[NamedParameter]) -> int:
    return sum(p.tensor.numel() * p.tensor.element_size() for p in parameters)


def _written(what: str, who: str = "The loop body") -> MisuseError:
    return MisuseError(f"{who} changes {what}, which would differ between workers, since "
                       "each computes other slots; do it in run.keep(after_step=…).")


def _decoded(objects: Tensor) -> dict[str, Any]:
    return decode(bytes(objects.numpy()), "objects")


def _are_alike(before: Tensor, now: Tensor) -> bool:
    """True if only switches differ, which Kept.check_body() reports."""
    texts = [encode({**_decoded(text), "modes": None, "frozen": None}, "", lambda ref, _: ref)
             for text in (before, now)]
    return texts[0] == texts[1]


def _name_of(key: tuple[str, str], before: Optional[Tensor], now: Tensor) -> str:
    if key != _OBJECTS or before is None:
        return f"the {'state' if key[0] == 'optimizer' else key[0]} `{key[1]}`"
    kept = [_decoded(text)["kept"] for text in (before, now)]
    names = [name for name in kept[1] if kept[1][name] != kept[0].get(name)]
    return f"the state of `{names[0]}`" if names else "the state"
