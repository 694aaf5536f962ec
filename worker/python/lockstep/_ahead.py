"""Asks for the batches that a worker computes next, ahead of need."""
from __future__ import annotations

from ._core import Core, Task as CoreTask
from ._data import Batch, Feed, Task


class Ahead:
    """`ahead`: batches that are asked for and not taken, at most."""

    def __init__(self, core: Core, feed: Feed, ahead: int):
        self._core = core
        self._feed = feed
        self._ahead = ahead
        self._generation = 0
        self._asked: set[tuple[int, int]] = set()

    def task_of(self, task: CoreTask) -> Task:
        return Task(task.step, task.slot, task.epoch, list(range(task.begin, task.end)),
                    self._core.indices(task))

    def ask(self, generation: int) -> None:
        """Asks for what comes next in this generation. Batches that were asked for before stay."""
        if self._ahead == 0:
            return
        if generation != self._generation:
            self._generation = generation
            tasks = self._core.upcoming(self._ahead)
            self._asked = {(t.step, t.slot) for t in tasks}
            self._feed.forget(lambda task: (task.step, task.slot) not in self._asked)
        else:
            tasks = self._core.upcoming(max(0, self._ahead - len(self._asked)))
            self._asked |= {(t.step, t.slot) for t in tasks}
        for task in tasks:
            self._feed.request(self.task_of(task))

    def take(self, task: CoreTask) -> Batch:
        self._asked.discard((task.step, task.slot))
        return self._feed.take(self.task_of(task))
