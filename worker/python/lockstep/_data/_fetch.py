"""Computes one task, alike in data processes and in process: seeds, samples, collate."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any

import torch

from .._errors import is_of_machine
from ._errors import BAD_DATA, INTERNAL, DataError
from ._pack import pack
from ._seeds import COLLATE, SAMPLE, SLOT, epoch_key, seed_generators
from ._source import Source
from ._task import Task

_MAX_TRACEBACK = 16 << 10


def check_length(source: Source, epoch: int) -> None:
    """Raises DataError(65) if the dataset has grown or shrunk since the run began."""
    samples = len(source.dataset)
    if samples != source.samples:
        raise DataError(
            BAD_DATA,
            f"len() of {source.name} is {samples} at the start of epoch {epoch}, it was "
            f"{source.samples} when the run began; keep the dataset as it is while a run lasts",
        )


def _traceback(error: BaseException) -> str:
    """The traceback from the user's function on: its first frame is ours."""
    trace = error.__traceback__
    inner = trace.tb_next if trace is not None and trace.tb_next is not None else trace
    text = "".join(traceback.format_exception(type(error), error, inner)).rstrip()
    if len(text) > _MAX_TRACEBACK:
        half = _MAX_TRACEBACK // 2
        text = f"{text[:half]}\n[…]\n{text[-half:]}"
    return text


def describe_range(task: Task) -> str:
    """Names the samples of a task, at most 8 of them one by one."""
    indices = ", ".join(map(str, task.indices[:8]))
    if len(task.indices) > 8:
        indices += f" and {len(task.indices) - 8} more"
    return (
        f"positions {min(task.positions)} to {max(task.positions)} of epoch {task.epoch} "
        f"(indices {indices}; step {task.step}, slot {task.slot})"
    )


class Fetcher:
    """Fetches samples of one source. Not thread-safe: it seeds the global generators."""

    def __init__(self, source: Source, seed: int) -> None:
        self._source = source
        self._seed = seed
        self._epoch: int | None = None
        self._rows = source.rows

    @property
    def makes_memory(self) -> bool:
        """True if no tensor of a batch is the dataset's own."""
        return self._rows is not None

    def samples(self, task: Task) -> list[Any]:
        """The samples of the task, in its order. Raises DataError(65, or 70: see is_of_machine)."""
        source = self._source
        if source.whole_slots:
            seed_generators(epoch_key(self._seed, task.epoch, SLOT), task.positions[0])
            fetch: Callable[[list[int]], Any] = source.dataset.__getitems__
            try:
                samples = list(fetch(list(task.indices)))
            except (Exception, SystemExit) as error:
                raise self._error("__getitems__", describe_range(task), error) from error
            if len(samples) != len(task.indices):
                raise DataError(
                    BAD_DATA,
                    f"__getitems__ of {source.name} returns {len(samples)} samples for "
                    f"{describe_range(task)}; return one for each of {len(task.indices)}",
                )
            return samples
        key = epoch_key(self._seed, task.epoch, SAMPLE)
        dataset = source.dataset
        samples = []
        for position, index in zip(task.positions, task.indices, strict=True):
            seed_generators(key, position)
            try:
                samples.append(dataset[index])
            except (Exception, SystemExit) as error:
                where = (
                    f"position {position} of epoch {task.epoch} (index {index}; "
                    f"step {task.step}, slot {task.slot})"
                )
                raise self._error("__getitem__", where, error) from error
        return samples

    def compute(self, task: Task) -> tuple[bytes, list[torch.Tensor]]:
        """The batch of the task, as pack() gives it. Raises DataError(65)."""
        if task.epoch != self._epoch:
            check_length(self._source, task.epoch)
            self._epoch = task.epoch
        if self._rows is not None:
            return pack(self._rows.take(task.indices))
        samples = self.samples(task)
        seed_generators(epoch_key(self._seed, task.epoch, COLLATE), task.positions[0])
        try:
            value = self._source.collate(samples)
        except (Exception, SystemExit) as error:
            raise self._error("collate", describe_range(task), error) from error
        return pack(value)

    def _error(self, function: str, where: str, error: BaseException) -> DataError:
        code, advice = BAD_DATA, "mend the sample or the code, then resume the run"
        if is_of_machine(error):
            code, advice = INTERNAL, "look at this machine's memory, disk and network"
        return DataError(
            code,
            f"{function} of {self._source.name} raised {type(error).__name__} at {where}; "
            f"{advice}:\n{_traceback(error)}",
        )
