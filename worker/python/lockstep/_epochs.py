"""run.epochs(): the loop over epochs, around the loop over batches.

    epochs() ─▶ body ─▶ batches(): trial, slots ... ─ EDGE: it ends ─▶ code between two epochs
                  ▲                                                          │
                  └── next epoch ── batches(): the reply to EDGE ◀───────────┤
                      the run is complete: the reply, and the end ◀──────────┘ after the last

INVARIANTS
 P1 The trial and every slot lie in an inner loop, so no code between two epochs runs in the trial.
 P2 The order EDGE is in hand from the end of an inner loop until the next one is asked for its first
    batch, or epochs() for what comes after the last. Only then may the code change what is kept.
 P3 All inner loops are parts of one loop over the same data: the feed, and what it has read ahead,
    goes on.
 P4 The number of the epoch comes from the run (the order in hand), not from a count of this
    process, which may join the run in any epoch and may install a state of another one.

Main thread only.
"""
from __future__ import annotations

import numbers
import operator
from typing import Any, Callable, Iterator

from ._errors import Left, Misuse, mark_alike

_OVER = object()
EDGE = object()  # among the batches of the run's one loop: the inner loop ends here
IDENTITY = ("loop", "epochs")  # comm/run/evaluation/edge.h

_LEFT = ("the loop over run.batches() was left before its epoch ended; end a run early by "
         "run.finish()")


class Epoch:
    """The number of an epoch, from 0; stands in for an int. A process that joins a run knows the
    epoch only once it has the state, so the number may change at the first batch after that."""

    def __init__(self) -> None:
        self.now = 0

    def __index__(self) -> int:
        return self.now

    __int__ = __trunc__ = __floor__ = __ceil__ = __index__

    def __float__(self) -> float:
        return float(self.now)

    def __bool__(self) -> bool:
        return self.now != 0

    def __hash__(self) -> int:
        return hash(self.now)

    def __repr__(self) -> str:
        return repr(self.now)

    def __format__(self, spec: str) -> str:
        return format(self.now, spec)

    def __reduce__(self) -> Any:
        return int, (self.now,)


def _forward(function: Callable[[Any, Any], Any]) -> Callable[[Epoch, Any], Any]:
    return lambda self, other: function(self.now, other)


def _reflected(function: Callable[[Any, Any], Any]) -> Callable[[Epoch, Any], Any]:
    return lambda self, other: function(other, self.now)


for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    setattr(Epoch, f"__{_name}__", _forward(getattr(operator, _name)))
for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "lshift", "rshift", "and_",
              "or_", "xor"):
    setattr(Epoch, f"__{_name.rstrip('_')}__", _forward(getattr(operator, _name)))
    setattr(Epoch, f"__r{_name.rstrip('_')}__", _reflected(getattr(operator, _name)))
for _name in ("neg", "pos", "abs", "invert"):
    setattr(Epoch, f"__{_name}__",
            lambda self, _function=getattr(operator, _name): _function(self.now))
numbers.Integral.register(Epoch)


class Epochs:
    """The iterator that Run.epochs() returns."""

    def __init__(self) -> None:
        self._epoch: Epoch | None = None
        self._loop: Iterator[Any] | None = None  # of the run: batches, and EDGE
        self._given: tuple[Any, ...] = ()
        self._is_inside = False  # an inner loop was opened and has not ended
        self.is_at_edge = False  # the order EDGE is in hand
        self._is_last = False    # the run ends at this edge

    # ---- the script's loops ------------------------------------------------------------------

    def __iter__(self) -> Iterator[Epoch]:
        return self

    def __next__(self) -> Epoch:
        if self._epoch is not None and not self.is_at_edge:
            raise Misuse(_LEFT if self._is_inside else
                         "the body of the loop over run.epochs() has no loop over run.batches()")
        if self._is_last:
            assert self._loop is not None
            next(self._loop, None)  # what is left to do; it raises where the run does not complete
            self.is_at_edge = False
            raise StopIteration
        before = 0 if self._epoch is None else self._epoch.now + 1
        self._epoch = Epoch()
        self._epoch.now = before
        return self._epoch

    def first(self, loop: Iterator[Any], given: tuple[Any, ...]) -> Iterator[Any]:
        """`loop`: over all batches of the run, with EDGE where an epoch ends."""
        if self._epoch is None:
            raise Misuse("batches() was called before the loop over run.epochs(); call it in the "
                         "loop's body")
        self._loop, self._given = loop, given
        return self._part()

    def again(self, given: tuple[Any, ...]) -> Iterator[Any]:
        """The next part of the loop over all batches."""
        if self._is_inside or not self.is_at_edge:
            raise Misuse("batches() was called twice in one epoch; the body of the loop over "
                         "run.epochs() has one loop over run.batches()")
        if any(now is not then and not _is_same(now, then)
               for now, then in zip(given, self._given)):
            raise Misuse("batches() was given other data, or other arguments, than in the epoch before: "
                         "all epochs of a run pass over the same data; make the data set or the "
                         "DataLoader before the loop over run.epochs()")
        return self._part()

    def _part(self) -> Iterator[Any]:
        assert self._loop is not None
        self._is_inside = True
        while True:
            batch = next(self._loop, _OVER)
            if batch is EDGE:
                self._is_inside = False
                return
            if batch is _OVER:  # the run was complete when this process came: it has no epoch
                raise Left()
            yield batch

    # ---- what the run says -------------------------------------------------------------------

    def computes(self, epoch: int) -> None:
        """A slot of this epoch is in work, or the code after it."""
        if self._epoch is not None:
            self._epoch.now = epoch

    def begins_edge(self, epoch: int, is_last: bool) -> None:
        self.computes(epoch)
        self.is_at_edge, self._is_last = True, is_last

    def ends_edge(self) -> None:
        self.is_at_edge = False

    def finishes(self) -> None:
        """The script ends the run at this edge: it is the last one."""
        self._is_last = self._is_last or self.is_at_edge

    def note_failure(self, error: BaseException | None, step: int) -> None:
        """The code between two epochs raises the same error in every worker."""
        if self.is_at_edge and isinstance(error, Exception):
            mark_alike(error, step)


def _is_same(now: Any, then: Any) -> bool:
    """A number, or names of phases."""
    return isinstance(now, (int, tuple, list)) and type(now) is type(then) and now == then
