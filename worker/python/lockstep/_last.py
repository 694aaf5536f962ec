"""Run.last: facts about the run's last applied step, alike in every worker.

It is part of the state: a worker that joins, and a run that is resumed, find the same facts.
"""
from __future__ import annotations

from typing import Any, NamedTuple, Sequence

from ._core import Order

NAME = "run.last"  # among the objects of the state; no name that a script can give


class Evaluated(NamedTuple):
    """The newest evaluation before a step; between two epochs, the one at the epoch's end."""

    step: int  # applied steps of its weights
    loss: float
    accuracy: float | None  # None: the evaluation counts no right predictions


class Last(NamedTuple):
    """An applied step."""

    step: int  # applied steps with it, as in history.jsonl
    loss: float  # mean over what the step counts
    metrics: dict[str, float]
    evaluation: Evaluated | None


class LastStep:
    """`value`: None: no step is applied yet. Main thread only."""

    def __init__(self) -> None:
        self.value: Last | None = None
        self._is_ending = False  # the script has ended the run in a turn of this batch

    def begin(self, metrics: Sequence[str], by_turn: Sequence[Sequence[str]], knows_right: bool,
              steps_per_epoch: int) -> None:
        """`by_turn`: the metrics, out of `metrics`, that the slots of each turn give."""
        self._metrics = metrics
        self._by_turn = by_turn
        self._knows_right = knows_right
        self._steps_per_epoch = steps_per_epoch

    def applies(self, order: Order) -> int:
        """A step is about to be applied. Returns the number of epochs that end with it. This
        includes epochs that ended with steps before it that counted nothing: the script does not
        hear of those."""
        before = self.value.step if self.value is not None else 0
        step = order.step + 1
        metrics = {name: order.metrics[i] for i, name in enumerate(self._metrics)
                   if name in self._by_turn[order.task.turn]}
        self.value = Last(step, order.loss, metrics, self._evaluated(order.evaluated))
        return step // self._steps_per_epoch - before // self._steps_per_epoch

    def ends(self, is_asked: bool, is_last_turn: bool) -> bool:
        """Whether the run ends with the step in progress: it does so only after a batch's last
        turn. `is_asked`: the script asks in this turn, alike on every worker."""
        is_ending = self._is_ending or is_asked
        self._is_ending = is_ending and not is_last_turn
        return is_ending and is_last_turn

    def ends_epoch(self, order: Order) -> None:
        """The code between two epochs follows: gives it the evaluation after the last step."""
        if self.value is not None:
            self.value = self.value._replace(evaluation=self._evaluated(order.evaluated))

    def _evaluated(self, told: Any) -> Evaluated | None:
        if told.step == 0:
            return None
        return Evaluated(told.step, told.loss,
                         told.correct / told.samples if self._knows_right else None)

    def state_dict(self) -> dict[str, Any]:
        if self.value is None:
            return {}
        step, loss, metrics, evaluation = self.value
        state = {"step": step, "loss": loss, "metrics": metrics,
                 "evaluation": None if evaluation is None else list(evaluation)}
        return {**state, "ends": True} if self._is_ending else state

    def state_of_before(self) -> dict[str, Any]:
        """The value for a state of an earlier version, which has no such object."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._is_ending = state.get("ends", False)
        if not state:
            self.value = None
            return
        evaluation = state["evaluation"]
        self.value = Last(state["step"], state["loss"], state["metrics"],
                          None if evaluation is None else Evaluated(*evaluation))
