"""The trial: a slot of the first step, computed before the worker registers; none of it is kept.

It finds out what the run must know of the script (which buffers a slot changes, how often each
gradient comes, which metrics there are), and that the script computes the same slot twice alike. So
a script that would break the promises of a run fails here, where only this process waits. A third
pass, over the run's smallest slot, finds a model that cannot train on so few samples.
"""
from __future__ import annotations

import ctypes
import hashlib
import itertools
from dataclasses import dataclass, field
from typing import Any

import torch

from ._buffers import Buffers
from ._core import Core, Task
from ._errors import CONFIG, LockstepError, Misuse
from ._hidden import Hidden
from ._state import in_memory, same_bits


@dataclass
class Observed:
    """The observations of one pass of the trial."""

    takes: dict[int, int] = field(default_factory=dict)  # by parameter
    gradients: dict[int, torch.Tensor] = field(default_factory=dict)
    statistics: dict[str, torch.Tensor] = field(default_factory=dict)
    counters: dict[str, torch.Tensor] = field(default_factory=dict)  # and buffers by rule
    loss: float = 0.0
    seen: Any = None  # Seen (_slot.py)

    def take(self, index: int, grad: torch.Tensor) -> None:
        self.takes[index] = self.takes.get(index, 0) + 1
        if index in self.gradients:
            self.gradients[index] = self.gradients[index] + grad
        else:
            self.gradients[index] = grad.detach().clone()

    def keep_statistics(self, buffers: Buffers) -> None:
        values = buffers.values()
        self.statistics = {b.name: values.pop(b.name) for b in buffers.statistics}
        self.counters = values

    def hash(self) -> str:
        digest = hashlib.sha256(repr(self.loss).encode())
        for name, tensor in [*sorted(self.gradients.items()), *sorted(self.statistics.items())]:
            digest.update(str(name).encode())
            digest.update(bytes_of(tensor))
        return digest.hexdigest()[:32]


def tasks_of(core: Core, samples: int, turns: int) -> tuple[Task, Task | None]:
    """The run's first slot with samples; and its smallest one, if that has fewer. All sizes occur
    in the first batch of an epoch and in the last, which may be short."""
    job = core.job
    last, most = (samples - 1) // int(job["global_batch"]), int(job["max_steps"])
    if 0 < most <= last * turns:
        last = 0  # the run ends before that batch
    tasks = [task for batch in sorted({0, last}) for slot in range(int(job["slots"]))
             if (task := core.task_of(batch * turns, slot)) is not None]
    smallest = min(tasks, key=_size)
    return tasks[0], smallest if _size(smallest) < _size(tasks[0]) else None


def other_task(core: Core) -> Task | None:
    """The second slot of the first step; None: there is none with samples."""
    tasks = (core.task_of(0, slot) for slot in range(int(core.job["slots"])))
    return next(itertools.islice((task for task in tasks if task is not None), 1, None), None)


def turn_of(core: Core, task: Task, turn: int) -> Task:
    """The same slot of the same batch in another turn. REQUIRES: `task` is of turn 0."""
    found = core.task_of(task.step + turn, task.slot)
    assert found is not None
    return found


def _size(task: Task) -> int:
    return task.end - task.begin


def hint_of(smallest: Task) -> str:
    """Advice for a script that fails in its smallest slot and not in the first."""
    return (f"this was the run's smallest slot, of {_size(smallest)} samples: step "
            f"{smallest.step + 1} has {smallest.step_samples}; set train.global_batch or train.slots "
            "so that it has more, or let the model take so few")


def hint_of_phase(name: str | None) -> str:
    """Advice for a script that fails in one of its phases, tried alone before the phases ahead of
    it."""
    return (f"this was phase {name} alone: all slots of a step compute a phase before any computes the "
            "next, so a phase may use nothing that another has computed but what is kept; compute it "
            "again in this phase")


def hash_of(seen: list[Observed]) -> str:
    """A hash of a slot in all its turns."""
    hashes = [observed.hash() for observed in seen]
    return hashes[0] if len(hashes) == 1 else \
        hashlib.sha256(" ".join(hashes).encode()).hexdigest()[:32]


def bytes_of(tensor: torch.Tensor) -> bytes:
    plain = in_memory(tensor)
    return ctypes.string_at(plain.data_ptr(), plain.numel() * plain.element_size())


AGAINST_HIDDEN = ("a metric of torchmetrics counts over all slots if it is kept, as run.keep(accuracy=...) "
                  "or by lockstep.fit(metrics=[...]); "
                  "or reset it before each use and give run.backward(metrics=...) the slot's value, of which "
                  "Lockstep takes the mean; anything else belongs into a buffer, which "
                  "run.keep(after_step=...) changes")
_CAUSES = ("It may draw from a random generator of its own, or count or keep something from slot to "
           "slot; draw from the default generators of torch, numpy or random, which Lockstep seeds "
           "for each slot, and let run.step be all that the body knows of its progress")


def compare(first: Observed, second: Observed, names: list[str], mode_left: str = "") -> None:
    """Raises unless both passes computed the same bits. `mode_left`: the first one's, in words."""
    if first.seen != second.seen:
        raise Misuse("backward() was given other losses, metrics, or a count, in the second slot than "
                     "in the first; give it the same in every slot")
    differs = [names[i] for i in sorted(first.gradients.keys() | second.gradients.keys())
               if i not in first.gradients or i not in second.gradients
               or not same_bits(first.gradients[i], second.gradients[i])]
    for before, now in ((first.statistics, second.statistics), (first.counters, second.counters)):
        differs += [name for name in before if not same_bits(before[name], now[name])]
    if not differs and first.loss == second.loss or (first.loss != first.loss and not differs):
        return
    what = f"the gradient or buffer {differs[0]}" if differs else "the loss"
    left = f"{mode_left}: set the mode where each batch begins, or set it back. " if mode_left else ""
    raise LockstepError(f"the script computed the same slot twice, and {what} came out different. "
                        + left + _CAUSES, CONFIG)
