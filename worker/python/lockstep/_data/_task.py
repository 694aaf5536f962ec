"""The next task of a rank, and the batch that it yields."""

from __future__ import annotations

import struct
from array import array
from typing import Any, NamedTuple

_HEAD = struct.Struct("<qqqI")


class Task(NamedTuple):
    """The samples of one slot of one step.

    `positions` are places in the order of the epoch; `indices` are the dataset's samples there, one
    for each position.
    """

    step: int
    slot: int
    epoch: int
    positions: list[int]
    indices: list[int]


class Batch(NamedTuple):
    """The value that collate returned, and the indices that were read from the dataset."""

    value: Any
    indices: list[int]


def encode_task(task: Task) -> bytes:
    """The task as bytes; equal tasks have equal bytes, so they serve as a key, too."""
    if len(task.positions) != len(task.indices) or not task.indices:
        raise ValueError(f"a task needs an index for each position, and one at least: {task}")
    return b"".join(
        (
            _HEAD.pack(task.step, task.slot, task.epoch, len(task.positions)),
            array("q", task.positions).tobytes(),
            array("q", task.indices).tobytes(),
        )
    )


def decode_task(data: bytes) -> Task:
    """The task that encode_task() wrote."""
    step, slot, epoch, count = _HEAD.unpack_from(data)
    numbers = array("q")
    numbers.frombytes(data[_HEAD.size :])
    values = numbers.tolist()
    return Task(step, slot, epoch, values[:count], values[count:])
