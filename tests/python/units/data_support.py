"""Datasets and small tools of the data tests."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable
from typing import Any

import torch

from lockstep._data import Batch, Feed, Task, unpack

try:
    import numpy
except ImportError:
    numpy = None


class Noisy:
    """Draws from all three generators, and from torch with several threads' worth of numbers."""

    def __init__(self, samples: int = 64) -> None:
        self.samples = samples

    def __len__(self) -> int:
        return self.samples

    def __getitem__(self, index: int) -> dict[str, Any]:
        more = numpy.random.rand() if numpy is not None else 0.5
        return {
            "x": torch.rand(3, 5) + index,
            "sum": torch.rand(70_000).sum(),
            "y": (random.random(), more),
            "name": f"sample {index}",
        }


class Numbers:
    """Sample i is i. `hook(index)` runs first."""

    def __init__(self, samples: int = 64, hook: Callable[[int], None] = lambda index: None) -> None:
        self.samples = samples
        self.hook = hook

    def __len__(self) -> int:
        return self.samples

    def __getitem__(self, index: int) -> torch.Tensor:
        self.hook(index)
        return torch.full((4,), float(index))


def task(step: int, size: int = 4, samples: int = 64, epoch: int = 0) -> Task:
    """Slot 0 of a step whose indices are the positions times 5."""
    positions = [(step * size + k) % samples for k in range(size)]
    return Task(step, 0, epoch, positions, [p * 5 % samples for p in positions])


def started(dataset: Any, workers: int, collate: Any = None, **options: Any) -> Feed:
    feed = Feed(unpack(dataset, collate), seed=7, workers=workers, **options)
    feed.start()
    return feed


def flat(value: Any) -> list[Any]:
    """A batch as a list that == compares bit by bit."""
    if isinstance(value, torch.Tensor):
        return [str(value.dtype), tuple(value.shape), value.stride(), value.tolist()]
    if isinstance(value, Batch):
        return [flat(value.value), value.indices]
    if isinstance(value, dict):
        return [[key, flat(item)] for key, item in value.items()]
    if isinstance(value, (list, tuple)):
        return [type(value).__name__, *map(flat, value)]
    return [type(value).__name__, value]


def eventually(condition: Callable[[], bool], seconds: float = 60) -> bool:
    """Whether the condition comes true before a deadline that only a hang meets."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.005)
    return True


def is_alive(pid: int) -> bool:
    """Whether a process exists and is no zombie."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            return file.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def slab_maps() -> int:
    with open("/proc/self/maps", encoding="utf-8") as file:
        return sum("memfd:lockstep-batch" in line for line in file)
