"""Requests the batches that a worker computes next, ahead of need."""
from __future__ import annotations

from typing import Any

from ._core import Core, Task as CoreTask
from ._data import Drawing, Feed, Task, remade
from ._device import Sender, Sent

_DRAWN = "batches.weights"  # of the run's identity, by which the audit knows (coordinator/audit/audit.h)


class Ahead:
    """`ahead`: the most batches that are requested and not taken. `drawing`: None: the run's order
    says which sample stands at a position. `turns`: of a batch (_phases.py), which is read for the
    first turn and held for the others: a worker holds its share of one batch. `sender`: None: the
    script gets batches in the host's memory."""

    def __init__(self, core: Core, feed: Feed, ahead: int, drawing: Drawing | None = None,
                 turns: int = 1, sender: Sender | None = None):
        self._core = core
        self._feed = feed
        self._ahead = ahead
        self._drawing = drawing
        self._generation = 0
        self._asked: dict[tuple[int, int], Task] = {}  # by key
        self._turns = turns
        # By key: samples, and the value.
        self._held: dict[tuple[int, int], tuple[list[int], Any]] = {}
        self._sender = sender
        self._sent: dict[tuple[int, int], tuple[list[int], Sent]] = {}

    def identity(self) -> list[tuple[str, str]]:
        """Facts about the data, besides its fingerprint, that may not change in a run."""
        return [] if self._drawing is None else [(_DRAWN, self._drawing.hash())]

    def task_of(self, task: CoreTask) -> Task:
        positions = list(range(task.begin, task.end))
        indices = self._core.indices(task) if self._drawing is None else \
            self._drawing.draw(int(self._core.job["seed"]), task.epoch, positions)
        return Task(task.step, task.slot, task.epoch, positions, indices)

    def _key(self, task: CoreTask) -> tuple[int, int]:
        """The key of a slot's batch: all turns of the slot share one batch."""
        return (task.step - task.turn, task.slot)

    def ask(self, generation: int) -> None:
        """Requests the next batches of this generation. Batches that were requested before stay."""
        if self._ahead == 0:
            return
        is_new = generation != self._generation
        if is_new:
            self._generation = generation
            self._asked = {}
            self._held = {}
            self._sent = {}
        new: dict[tuple[int, int], Task] = {}
        while (room := self._ahead - len(self._asked) - len(new)) > 0:
            upcoming = self._core.upcoming(room)
            if not upcoming:
                break
            for task in upcoming:
                key = self._key(task)
                if not any(key in known for known in (self._asked, self._held, self._sent)):
                    new[key] = new.get(key) or self.task_of(task)
        self._asked |= new
        if is_new:
            wanted = {(task.step, task.slot) for task in self._asked.values()}
            self._feed.forget(lambda task: (task.step, task.slot) not in wanted)
        for task in new.values():
            self._feed.request(task)

    def take(self, task: CoreTask, *, is_trial: bool) -> Any:
        """The batch of the slot. Tells the run which samples were read. The ledger counts
        positions, so for drawn samples it tells which samples the order has there."""
        if is_trial:
            return self._here(self._feed.take(self.task_of(task)).value)
        indices, value = self._batch_of(task)
        self._core.has_samples(indices if self._drawing is None else self._core.indices(task))
        return value

    def _batch_of(self, task: CoreTask) -> tuple[list[int], Any]:
        key = self._key(task)
        self._held = {k: v for k, v in self._held.items() if k[0] == key[0]}
        held = self._held.pop(key, None)
        if held is None:
            held = self._taken(key, task)
            self._send_next()
        if task.turn + 1 == self._turns:
            return held
        self._held[key] = held
        return held[0], remade(held[1], _copied)  # a phase may write into its batch

    def _taken(self, key: tuple[int, int], task: CoreTask) -> tuple[list[int], Any]:
        sent = self._sent.pop(key, None)
        if sent is not None and self._sender is not None:
            return sent[0], self._sender.arrived(sent[1])
        batch = self._feed.take(self._asked.pop(key, None) or self.task_of(task))
        return batch.indices, self._here(batch.value)

    def _here(self, value: Any) -> Any:
        """The value, where the script wants it."""
        return value if self._sender is None else self._sender.arrived(self._sender.send(value))

    def _send_next(self) -> None:
        """Sends the next batch to the device while the loop's body computes this one."""
        if self._sender is None or not self._asked or self._sent:
            return
        key, asked = next(iter(self._asked.items()))
        batch = self._feed.take_ready(asked)
        if batch is not None:
            del self._asked[key]
            self._sent[key] = batch.indices, self._sender.send(batch.value)


def _copied(tensor: Any) -> Any:
    return tensor.clone()  # with the same strides, on which a kernel's bits may depend
