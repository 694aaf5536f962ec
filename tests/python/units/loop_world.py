"""A script and a core for the tests of a whole loop. The core gives the orders that a test lists, adds up
the slots' gradients, and records what the loop tells it."""

from __future__ import annotations

import contextlib
import ctypes
import io
import math
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any
from unittest import mock

import torch
from torch import nn, optim
from torch.nn.functional import linear

from lockstep import _core
from lockstep._core import Evaluated, Memory, Order, Reply, Task
from lockstep._device import HOST
from lockstep._run import Run

BATCH, SAMPLES = 4, 12  # three batches an epoch, of two slots each
DATA = [torch.tensor([float(i), 1.0]) for i in range(SAMPLES)]
JOB = {"seed": "3", "slots": "2", "global_batch": str(BATCH), "max_steps": "0", "epochs": "2",
       "exact": "1", "has_data": "0", "eval_data": "", "eval_batch": "2", "script_log": ""}


class Core:
    """`orders(core)` yields the orders of a run, the last one end(). Only this process computes.
    For the slots of another worker, a test adds to `sums`."""

    def __init__(self, orders: Callable[[Core], Iterator[Order]], **job: str) -> None:
        self.job = JOB | job
        self._orders = orders(self)
        self._order: Order | None = None
        self.replies: list[SimpleNamespace] = []  # in the order of the orders
        self.asked_to_check: list[int] = []
        self.told: list[list[int]] = []  # the samples of each slot
        self.turns = 1
        self._alive: Any = None

    # ---- what the loop tells and asks --------------------------------------------------------

    def set_turns(self, turns: int) -> None:
        self.turns = turns

    def declare(self, samples: int, fingerprint: str) -> None:
        self.samples = samples

    def evaluates(self, *told: Any) -> None:
        self.evaluation = told

    def layout(self, parameters: Any, statistics: Any, metrics: Any, has_counts: bool) -> Memory:
        self.late = {name: late for name, *_, late in parameters}
        self.metrics, self.has_counts = metrics, has_counts
        self.parameter_begins, floats = _begins(parameters)
        self.statistic_begins, more = _begins(statistics)
        self.sums, self.means = torch.zeros(floats), torch.zeros(more)
        self.used = torch.zeros(len(parameters))
        self.slots_summed = 0
        return Memory(self.sums.data_ptr(), self.means.data_ptr(), self.used.data_ptr(),
                      self.parameter_begins, self.statistic_begins, floats, more)

    def begin(self, fingerprint: list[str], identity: Any, state_hash: str, code_hash: str,
              lrs: Any) -> None:
        self.fingerprint, self.identity, self.state_hash = fingerprint, dict(identity), state_hash

    def task_of(self, step: int, slot: int) -> Task | None:
        batch, turn = divmod(step, self.turns)
        epoch, at = divmod(batch, -(-self.samples // BATCH))
        size, slots = min(BATCH, self.samples - at * BATCH), int(self.job["slots"])
        begin, end = (at * BATCH + size * k // slots for k in (slot, slot + 1))
        return None if begin == end else Task(
            step=step, epoch=epoch, begin=begin, end=end, step_samples=size, slot=slot,
            seed=100 * batch + slot, turn=turn)

    def indices(self, task: Task) -> list[int]:
        return list(range(task.begin, task.end))

    def has_samples(self, indices: list[int]) -> None:
        self.told.append(indices)

    def is_check(self, applied: int) -> bool:
        self.asked_to_check.append(applied)
        return False

    def backward_begins(self) -> bool:
        return True

    def take(self, parameter: int, address: int, dtype: int, elements: int) -> None:
        kind = getattr(torch, _core.DTYPES[dtype])
        memory = (ctypes.c_uint8 * (elements * kind.itemsize)).from_address(address)
        begin = self.parameter_begins[parameter]
        self.sums[begin:begin + elements] += torch.frombuffer(memory, dtype=kind).float()
        self.used[parameter] = 1

    def take_statistic(self, statistic: int, address: int, elements: int) -> None:
        memory = (ctypes.c_float * elements).from_address(address)
        begin = self.statistic_begins[statistic]
        self.means[begin:begin + elements] += torch.frombuffer(memory, dtype=torch.float32)
        self.slots_summed += statistic == 0

    def next(self, reply: Reply | None) -> Order:
        if reply is not None:
            assert self._order is not None
            self.replies.append(SimpleNamespace(
                kind=self._order.kind, code=reply.code, text=reply.text, ends_run=bool(reply.ends_run),
                count=reply.count, lrs=reply.lrs[:self.turns] if reply.lrs else None,
                metrics=reply.metrics[:len(self.metrics)] if reply.metrics else None,
                names={t.name.decode() for t in reply.tensors[:reply.tensor_count]}))
            if self._order.kind == _core.APPLY:
                for floats in (self.sums, self.means, self.used):
                    floats.zero_()
                self.slots_summed = 0
        self._order = next(self._orders)
        return self._order

    def close(self, code: int) -> None:
        self.code = code

    # ---- orders ------------------------------------------------------------------------------

    def slot(self, step: int, slot: int) -> Order:
        return Order(kind=_core.SLOT, task=self.task_of(step, slot), step=step, generation=1)

    def apply(self, step: int, ends_run: bool = False) -> Order:
        self.means /= max(1, self.slots_summed)
        return Order(kind=_core.APPLY, task=self.task_of(step, 0), step=step, generation=1,
                     ends_run=ends_run, metrics=(ctypes.c_double * 8)())

    def edge(self, step: int, is_last: bool = False, loss: float = 0.0) -> Order:
        """The order for the edge after step `step`. `loss`: of the evaluation there."""
        return Order(kind=_core.EDGE, task=self.task_of(step - 1, 0), step=step, generation=1,
                     is_done=is_last, evaluated=Evaluated(step=step, loss=loss, samples=2))

    def state(self, step: int) -> Order:
        return Order(kind=_core.STATE, step=step, generation=1)

    def evaluate(self, step: int) -> Order:
        return Order(kind=_core.EVAL, task=Task(begin=0, end=2, seed=5), share_end=2, step=step,
                     generation=1)

    def install(self, entries: list[Any], step: int) -> Order:
        """A state that another process has described."""
        self._alive = [(e, e.tensor.clone()) for e in entries]
        array, keeps = _core.tensors_of([
            (e.name, e.shape, tensor.data_ptr(), tensor.numel() * tensor.element_size(),
             2 if e.section == "optimizer" else 0,  # files keep parameters and buffers together
             _core.DTYPES.index(str(tensor.dtype).removeprefix("torch.")), False)
            for e, tensor in self._alive])
        self._alive += [array, keeps]
        return Order(kind=_core.INSTALL, tensors=array, tensor_count=len(array), step=step, generation=1)

    def end(self) -> Order:
        return Order(kind=_core.END, is_done=True, text=b"")


def _begins(rows: Any) -> tuple[list[int], int]:
    begins, floats = [], 0
    for _, shape, *_ in rows:
        begins.append(floats)
        floats += math.prod(shape)
    return begins, floats


@contextlib.contextmanager
def running(orders: Callable[[Core], Iterator[Order]], **job: str) -> Iterator[tuple[Run, Core]]:
    """A run of this process that has these orders. It does not look at what other tests have made."""
    core = Core(orders, **job)
    with mock.patch("lockstep._run.watch_threads"), mock.patch("lockstep._tries.StopSignals"), \
            mock.patch("lockstep._tries.refuse_unkept"), \
            mock.patch("lockstep._hidden._other_modules", return_value=()), \
            contextlib.redirect_stderr(io.StringIO()):
        yield Run(core, HOST, is_worker=False), core


class Model(nn.Module):
    """Its output is linear in the parameters, so gradients depend on the data alone."""

    def __init__(self, weight: float = 1.0) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.full((1, 2), weight))
        self.bias = nn.Parameter(torch.zeros(1))
        self.norm = nn.BatchNorm1d(2, affine=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.norm(x)
        return linear(x, self.weight, self.bias)


class Script:
    """Trains `model` by SGD with momentum. `keeps`: more arguments of run.keep()."""

    def __init__(self, model: nn.Module | None = None, **keeps: Any) -> None:
        self.model: Any = Model() if model is None else model
        self.optimizer = optim.SGD(self.model.parameters(), 0.5, momentum=0.5)
        self.keeps = keeps
        self.seen: list[Any] = []  # by slots, without the trial's

    def body(self, x: torch.Tensor) -> None:
        """The loop's body. Tests that look at something else replace it."""
        self.run.backward(self.model(x).mean())

    def see(self, value: Any) -> None:
        if not self.run.is_trial:
            self.seen.append(value)

    def train(self, orders: Callable[[Core], Iterator[Order]], data: Any = DATA, **job: str) -> Core:
        with running(orders, **job) as (self.run, core):
            self.run.keep(model=self.model, optimizer=self.optimizer, **self.keeps)
            for x in self.run.batches(data):
                self.body(x)
        return core

    def bits(self) -> dict[str, bytes]:
        return {e.name: e.tensor.view(-1).view(torch.uint8).numpy().tobytes()
                for e in self.run._kept.describe()}


def alone(script: Script, steps: int, before_step: Callable[[Script], Any] = lambda script: None) -> Script:
    """Trains without Lockstep, each step's samples at once."""
    for step in range(steps):
        script.optimizer.zero_grad()
        script.model(torch.stack(DATA[BATCH * step:BATCH * (step + 1)])).mean().backward()
        before_step(script)
        script.optimizer.step()
    return script


def steps(*numbers: int) -> Callable[[Core], Iterator[Order]]:
    """Whole steps, and the end."""
    def orders(core: Core) -> Iterator[Order]:
        for step in numbers:
            yield from whole(core, step)
        yield core.end()
    return orders


def whole(core: Core, step: int) -> Iterator[Order]:
    yield core.slot(step, 0)
    yield core.slot(step, 1)
    yield core.apply(step)
