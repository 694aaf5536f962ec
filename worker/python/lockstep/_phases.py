"""The phases of a loop: several updates on one batch, each by another optimizer.

    run.keep(G=G, D=D, d=..., g=...)
    for phase, (x, y) in run.batches(data, phases=("d", "g")):

All slots of a step compute phase d, the optimizer kept as `d` steps, and then all slots compute phase
g on the same batch. Each phase is a step of the run's ledger; the core calls them turns
(comm/run/plan/step_plan.h). A loop without phases has one turn a batch, in which all optimizers step.
"""
from __future__ import annotations

from typing import Any, Sequence

from ._errors import Misuse
from ._state import Kept

_NAME = "batches.phases"  # of the run's identity


class Phases:
    """`names`: None: the loop has none."""

    def __init__(self, kept: Kept, names: Sequence[str] | None = None):
        self._kept = kept
        self.names: tuple[str, ...] | None = None
        if names is not None:
            self._check(names)
            self.names = tuple(names)
        self._owned = {name: self._parameters_of(optimizer)
                       for name, optimizer in kept.optimizers.items()}

    def _check(self, names: Sequence[str]) -> None:
        if isinstance(names, str) or not names or len(set(names)) != len(names):
            raise Misuse(f"batches(phases={names!r}): name each phase once, in their order")
        optimizers = self._kept.optimizers
        for name in names:
            if name not in optimizers:
                raise Misuse(f"batches(phases={names!r}): a phase is named after the optimizer that "
                             f"steps in it, and run.keep() was given none as {name}=")
        if idle := [name for name in optimizers if name not in names]:
            raise Misuse(f"batches(phases={names!r}): the optimizer {idle[0]} would step in none of "
                         "them; name a phase after it, too, or keep it out of run.keep()")

    @property
    def count(self) -> int:
        """Turns of a batch."""
        return 1 if self.names is None else len(self.names)

    def name(self, turn: int) -> str | None:
        return None if self.names is None else self.names[turn]

    def identity(self) -> list[tuple[str, str]]:
        return [] if self.names is None else [(_NAME, ",".join(self.names))]

    def yielded(self, turn: int, batch: Any) -> Any:
        """The value that the loop's body gets."""
        return batch if self.names is None else (self.names[turn], batch)

    def optimizers(self, turn: int) -> dict[str, Any]:
        """The optimizers that step in this turn, by name."""
        kept = self._kept.optimizers
        return kept if self.names is None else {self.names[turn]: kept[self.names[turn]]}

    def owned(self, turn: int) -> frozenset[int] | None:
        """The indices of the parameters that get gradients in this turn; None: all do."""
        return None if self.names is None else self._owned[self.names[turn]]

    def owned_by(self, name: str, turn: int) -> frozenset[int]:
        """The indices of the parameters of the optimizer `name`. Raises Misuse if it does not step in
        this turn."""
        if name not in self.optimizers(turn):
            where = "" if self.names is None else f" in phase {self.names[turn]}"
            raise Misuse(f"run.backward() was given a loss for {name!r}, and no optimizer that "
                         f"run.keep() was given by that name steps{where}")
        return self._owned[name]

    def _parameters_of(self, optimizer: Any) -> frozenset[int]:
        inside = {id(p) for group in optimizer.param_groups for p in group["params"]}
        return frozenset(i for i, p in enumerate(self._kept.parameters) if id(p.tensor) in inside)
