"""Asks for the batches that a worker computes next, ahead of need."""
from __future__ import annotations

from typing import Any

import torch

from ._core import Core, Task as CoreTask
from ._data import Drawing, Feed, Task

_DRAWN = "batches.weights"  # of the run's identity, by which the audit knows (coordinator/audit/audit.h)


class Ahead:
    """`ahead`: batches that are asked for and not taken, at most. `drawing`: None: the run's order says
    which sample stands at a position. `turns`: of a batch (_phases.py); it is read for the first of
    them, and held for the others where it can be copied: a worker holds its share of one batch."""

    def __init__(self, core: Core, feed: Feed, ahead: int, drawing: Drawing | None = None,
                 turns: int = 1):
        self._core = core
        self._feed = feed
        self._ahead = ahead
        self._drawing = drawing
        self._generation = 0
        self._asked: dict[tuple[int, int], Task] = {}  # by key
        self._turns = turns
        self._holds = turns > 1  # False: a batch came that cannot be copied
        self._held: dict[tuple[int, int], tuple[list[int], Any]] = {}  # by key: samples, value

    def identity(self) -> list[tuple[str, str]]:
        """What of the data may not change in a run, besides its fingerprint."""
        return [] if self._drawing is None else [(_DRAWN, self._drawing.hash())]

    def task_of(self, task: CoreTask) -> Task:
        positions = list(range(task.begin, task.end))
        indices = self._core.indices(task) if self._drawing is None else \
            self._drawing.draw(int(self._core.job["seed"]), task.epoch, positions)
        return Task(task.step, task.slot, task.epoch, positions, indices)

    def _key(self, task: CoreTask) -> tuple[int, int]:
        """Of the batch of a slot. Turns that hold it share it."""
        return (task.step - task.turn if self._holds else task.step, task.slot)

    def ask(self, generation: int) -> None:
        """Asks for what comes next in this generation. Batches that were asked for before stay."""
        if self._ahead == 0:
            return
        is_new = generation != self._generation
        if is_new:
            self._generation = generation
            self._asked = {}
            self._held = {}
        new: dict[tuple[int, int], Task] = {}
        while (room := self._ahead - len(self._asked) - len(new)) > 0:
            upcoming = self._core.upcoming(room)
            if not upcoming:
                break
            for task in upcoming:
                key = self._key(task)
                if key not in self._asked and key not in self._held:
                    new[key] = new.get(key) or self.task_of(task)
        self._asked |= new
        if is_new:
            wanted = {(task.step, task.slot) for task in self._asked.values()}
            self._feed.forget(lambda task: (task.step, task.slot) not in wanted)
        for task in new.values():
            self._feed.request(task)

    def take(self, task: CoreTask, *, is_trial: bool) -> Any:
        """The batch of the slot; the run is told what the dataset was asked for. The ledger counts
        positions, so for drawn samples the run is told which samples the order has there."""
        if is_trial:
            return self._feed.take(self.task_of(task)).value
        indices, value = self._batch_of(task)
        self._core.has_samples(indices if self._drawing is None else self._core.indices(task))
        return value

    def _batch_of(self, task: CoreTask) -> tuple[list[int], Any]:
        key = self._key(task)
        is_last = task.turn + 1 == self._turns
        self._held = {k: v for k, v in self._held.items() if k[0] == key[0]}
        held = self._held.pop(key, None)
        if held is None:
            batch = self._feed.take(self._asked.pop(key, None) or self.task_of(task))
            held = batch.indices, batch.value
        if is_last or not self._holds:
            return held
        try:
            mine = copied(held[1])  # a phase may write into its batch
        except Uncopied:
            self._holds = False
            return held
        self._held[key] = held
        return held[0], mine


class Uncopied(Exception):
    """Something in a batch that is no tensor, and could be changed."""


def copied(value: Any) -> Any:
    """A batch of the same values that shares nothing with `value` that a body could change."""
    if isinstance(value, (str, bytes, int, float, complex, bool, type(None))):
        return value
    if type(value) is torch.Tensor and torch.ops.aten.is_non_overlapping_and_dense.default(value):
        return value.clone()  # with the same strides, on which a kernel's bits may depend
    if type(value) is dict:
        return {key: copied(each) for key, each in value.items()}
    if type(value) in (list, tuple):
        return type(value)(copied(each) for each in value)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(copied(each) for each in value))
    raise Uncopied
