"""Asks for the batches that a worker computes next, ahead of need."""
from __future__ import annotations

from typing import Any

from ._core import Core, Task as CoreTask
from ._data import Feed, Task


class Ahead:
    """`ahead`: batches that are asked for and not taken, at most."""

    def __init__(self, core: Core, feed: Feed, ahead: int):
        self._core = core
        self._feed = feed
        self._ahead = ahead
        self._generation = 0
        self._asked: dict[tuple[int, int], Task] = {}  # by step and slot

    def task_of(self, task: CoreTask) -> Task:
        return Task(task.step, task.slot, task.epoch, list(range(task.begin, task.end)),
                    self._core.indices(task))

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
        """The batch of the slot; the run is told what the dataset was asked for."""
        asked = self._asked.pop((task.step, task.slot), None)
        batch = self._feed.take(asked or self.task_of(task))
        if not is_trial:
            self._core.has_samples(batch.indices)
        return batch.value
