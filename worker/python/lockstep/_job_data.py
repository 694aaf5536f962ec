"""The data that the job names (data.train.path). C++ opens, orders and loads them; here they become
tensors over the loader's memory, without a copy."""
from __future__ import annotations

import ctypes
import os
import weakref
from typing import Any, Callable, Mapping

import torch

from . import _core
from ._core import Core, Field, Task
from ._device import Sender

_DTYPES = [getattr(torch, name) for name in _core.DTYPES]
_INPUT, _TARGET, _WEIGHT = range(3)  # ls_field_role


class Batch(tuple):
    """The pair (x, y) of a slot. Each is a tensor; where the job names several inputs or targets
    (data.inputs, data.targets), a dict of them by their names.

    `fields`: all tensors that have names. `weight`: of the samples (data.weight), or None.
    """

    fields: Mapping[str, torch.Tensor]
    weight: torch.Tensor | None

    def remade(self, each: Callable[[torch.Tensor], torch.Tensor]) -> Batch:
        """The same batch with each(tensor) for its tensors."""
        made: dict[int, torch.Tensor] = {}

        def of(value: Any) -> Any:
            if isinstance(value, dict):
                return {name: of(tensor) for name, tensor in value.items()}
            if value is not None and id(value) not in made:  # a tensor may be in several places
                made[id(value)] = each(value)
            return None if value is None else made[id(value)]

        batch = Batch(of(value) for value in self)
        batch.fields = of(dict(self.fields))
        batch.weight = of(self.weight)
        return batch

    @property
    def x(self) -> Any:
        return self[0]

    @property
    def y(self) -> Any:
        return self[1]


class JobData:
    """Batches of the job's own data, by the methods that Ahead has for the script's data.
    `has_eval`: opens the evaluation data, too; they stay in the host's memory, whatever
    `sender`."""

    def __init__(self, core: Core, is_worker: bool, has_eval: bool, sender: Sender | None = None):
        self._core = core
        self._sender = sender
        self.samples, self.eval_samples = core.open_data(None if is_worker else _cache_of_alone(),
                                                         has_eval)

    def identity(self) -> list[tuple[str, str]]:
        return []

    def ask(self, generation: int) -> None:
        """Nothing to do: the loader reads ahead by itself."""

    def take(self, task: Task, *, is_trial: bool) -> Batch:
        """The batch keeps its values as long as the caller holds it."""
        batch = self._held(*self._core.batch_of(task))
        return batch if self._sender is None else self._sender.arrived(self._sender.send(batch))

    def take_eval(self, begin: int, end: int) -> Batch:
        """These samples of the evaluation data. REQUIRES: has_eval."""
        return self._held(*self._core.eval_batch(begin, end))

    def _held(self, handle: int, fields: list[Field]) -> Batch:
        held = _Held()
        weakref.finalize(held, self._core.free_batch, handle).atexit = False
        return _batch_of([(field.role, field.name.decode(), _tensor_of(field, held))
                          for field in fields])


class _Held:
    """Every tensor of a batch keeps one alive, which holds the batch's memory."""


def _cache_of_alone() -> str:
    """The user's cache directory: a run of one process has no run directory."""
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    cache = os.path.join(home, "lockstep")
    os.makedirs(cache, mode=0o700, exist_ok=True)
    return cache


def _tensor_of(field: Field, held: _Held) -> torch.Tensor:
    memory = (ctypes.c_uint8 * field.bytes).from_address(field.data)
    memory.held = held
    sizes = field.shape[:field.dims]
    strides = [1] * len(sizes)
    for dim in range(len(sizes) - 1, 1, -1):
        strides[dim - 1] = strides[dim] * sizes[dim]
    strides[0] = field.sample_stride
    return torch.frombuffer(memory, dtype=_DTYPES[field.dtype]).as_strided(sizes, strides)


def _batch_of(fields: list[tuple[int, str, torch.Tensor]]) -> Batch:
    def of(role: int) -> Any:
        found = {name: tensor for kind, name, tensor in fields if kind == role}
        return found if len(found) > 1 else next(iter(found.values()), None)

    batch = Batch((of(_INPUT), of(_TARGET)))
    batch.fields = {name: tensor for _, name, tensor in fields if name}
    batch.weight = of(_WEIGHT)
    return batch
