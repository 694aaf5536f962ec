"""Asks for the batches that a worker computes next, ahead of need."""
from __future__ import annotations

from typing import Any

from ._core import Core, Task as CoreTask
from ._data import Drawing, Feed, Task

_DRAWN = "batches.weights"  # of the run's identity, by which the audit knows (coordinator/audit/audit.h)


class Ahead:
    """`ahead`: batches that are asked for and not taken, at most. `drawing`: None: the run's order says
    which sample stands at a position."""

    def __init__(self, core: Core, feed: Feed, ahead: int, drawing: Drawing | None = None):
        self._core = core
        self._feed = feed
        self._ahead = ahead
        self._drawing = drawing
        self._generation = 0
        self._asked: dict[tuple[int, int], Task] = {}  # by step and slot

    def identity(self) -> list[tuple[str, str]]:
        """What of the data may not change in a run, besides its fingerprint."""
        return [] if self._drawing is None else [(_DRAWN, self._drawing.hash())]

    def task_of(self, task: CoreTask) -> Task:
        positions = list(range(task.begin, task.end))
        indices = self._core.indices(task) if self._drawing is None else \
            self._drawing.draw(int(self._core.job["seed"]), task.epoch, positions)
        return Task(task.step, task.slot, task.epoch, positions, indices)

    def ask(self, generation: int) -> None:
        """Asks for what comes next in this generation. Batches that were asked for before stay."""
        if self._ahead == 0:
            return
        is_new = generation != self._generation
        if is_new:
            self._generation = generation
            self._asked = {}
        tasks = [self.task_of(t) for t in
                 self._core.upcoming(max(0, self._ahead - len(self._asked)))]
        self._asked |= {(task.step, task.slot): task for task in tasks}
        if is_new:
            self._feed.forget(lambda task: (task.step, task.slot) not in self._asked)
        for task in tasks:
            self._feed.request(task)

    def take(self, task: CoreTask, *, is_trial: bool) -> Any:
        """The batch of the slot; the run is told what the dataset was asked for. The ledger counts
        positions, so for drawn samples the run is told which samples the order has there."""
        asked = self._asked.pop((task.step, task.slot), None)
        batch = self._feed.take(asked or self.task_of(task))
        if not is_trial:
            self._core.has_samples(batch.indices if self._drawing is None else
                                   self._core.indices(task))
        return batch.value
