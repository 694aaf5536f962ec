"""Switches that a script changes between two steps, and in no slot: the mode of each module, and
which of the trained parameters are frozen (requires_grad).

A slot's body finds the switches as the step before left them, and leaves them so: each worker
computes other slots. The state has them, so a worker that joins finds them, too.
"""

from __future__ import annotations

from typing import Any, Optional

from ._errors import MisuseError
from ._modules import Modules
from ._named import NamedParameter

_BETWEEN = ("which would differ between workers, since each computes other slots; set it back in the same "
            "batch, or set it in run.keep(after_step=…) or between two epochs.")


class Switches:
    """`trained`: the parameters that get gradients unless they are frozen."""

    def __init__(self, modules: Modules, trained: list[NamedParameter]) -> None:
        self._modules = modules
        self._trained = trained
        self._modes: Optional[list[bool]] = None  # that a body has to leave; None: any
        self._requires: Optional[list[bool]] = None

    def begin(self) -> None:
        """The loop begins: notes which parameters are frozen now. Its first body may still set
        modes."""
        self._requires = self._requires_now()

    def note(self) -> None:
        """Notes all switches as they are now."""
        self._modes, self._requires = self.modes(), self._requires_now()

    def check(self) -> None:
        """After a body: raises MisuseError, with the name, for a switch that it changed."""
        left = "" if self._modes is None else self.mode_left(self._modes)
        if left:
            raise MisuseError(f"{left}, {_BETWEEN}")
        now = self._requires_now()
        if self._requires is not None and now != self._requires:
            at = next(i for i, pair in enumerate(zip(now, self._requires)) if pair[0] != pair[1])
            raise MisuseError(f"The loop body changes requires_grad of `{self._trained[at].name}`, {_BETWEEN}")

    def modes(self) -> list[bool]:
        """The mode of each module, for mode_left()."""
        return self._modules.training()

    def mode_left(self, found: list[bool]) -> str:
        """Names, in words, a module that a body left in another mode than `found`; empty: there is
        none."""
        return self._modules.mode_left(found)

    def frozen(self) -> list[str]:
        """The names of trained parameters that get no gradient now."""
        return [p.name for p in self._trained if not p.tensor.requires_grad]

    def can_freeze(self, names: Any) -> bool:
        """Whether `names` is a possible result of frozen()."""
        trained = {p.name for p in self._trained}
        return type(names) is list and all(type(name) is str and name in trained for name in names)

    def freeze(self, names: list[str]) -> None:
        """The opposite of frozen(): all others get gradients."""
        frozen = set(names)
        for parameter in self._trained:
            parameter.tensor.requires_grad_(parameter.name not in frozen)

    def _requires_now(self) -> list[bool]:
        return [p.tensor.requires_grad for p in self._trained]
