"""Applies a step's sums, and handles the state between two steps: all orders except slots."""
from __future__ import annotations

import contextlib
import ctypes
import math
from typing import Any

import torch

from . import _core, _seeds
from ._buffers import Buffers
from ._core import Memory, Order, Reply
from ._device import HOST, Device, Places, Sums, floats_at
from ._errors import BAD_DATA, failing_alike, text_of
from ._gradients import Gradients, dtype_number
from ._hidden import Unkept
from ._last import LastStep
from ._phases import Phases
from ._scaler import Scaler
from ._state import Kept, MisuseError, StateError, times_due

_DTYPES = [getattr(torch, name) for name in _core.DTYPES]


class Step:
    """Applies steps, describes and installs the state. Main thread only."""

    def __init__(self, kept: Kept, phases: Phases, gradients: Gradients, buffers: Buffers,
                 memory: Memory, clip_norm: float | None, last: LastStep, device: Device = HOST,
                 places: Places | None = None):
        """`places`: where the device's own sums are read, if it has some."""
        self._kept = kept
        self._phases = phases
        self._turn = 0  # of the step in work, or the last one
        self._last = last
        self._gradients = gradients
        self._buffers = buffers
        self._clip_norm = clip_norm
        self._scaler = Scaler.of(kept)
        self._sums = Sums(device, memory.gradients, memory.gradient_floats)
        self._views = gradients.views_of(self._sums.flat, memory.parameter_begins)
        self._used = floats_at(memory.used, len(kept.parameters))
        self._places = places
        self._flat_means = means = floats_at(memory.statistics, memory.statistic_floats)
        self._means = [means[begin:begin + math.prod(shape)]
                       for begin, (_, shape) in zip(memory.statistic_begins, buffers.rows())]
        has_code = kept.update is not None or kept.after_step is not None
        self._unkept = Unkept(kept) if has_code else None  # until a step is applied
        self._alive: Any = None  # what the last reply points to
        self._edge = contextlib.ExitStack()

    def lrs(self) -> Any:
        """The rate of each turn's next step: of the first group of the first optimizer that steps
        in it."""
        return _core.doubles_of([self._lr(turn) for turn in range(self._phases.count)])

    def _lr(self, turn: int) -> float:
        for optimizer in self._phases.optimizers(turn).values():
            return float(optimizer.param_groups[0].get("lr") or 0.0)  # Adafactor's may be None
        return 0.0

    def answer(self, order: Order) -> Reply:
        if order.kind == _core.APPLY:
            with failing_alike(order.step + 1):
                self._turn = self._buffers.turn = order.task.turn
                return self._apply(order, self._last.applies(order))
        if order.kind == _core.STATE:
            return self._describe()
        return self._install(order)

    def begin_edge(self, order: Order) -> None:
        """Prepares for the script's code between two epochs, which runs alike on every worker,
        whatever slots it had, as in _apply(). end_edge() follows."""
        self._last.ends_epoch(order)
        self._buffers.restore()
        torch.clear_autocast_cache()
        _seeds.seed_all(order.task.seed)
        self._edge.enter_context(self._kept.applying())

    def end_edge(self) -> Reply:
        self._edge.close()
        self._gradients.clear()
        torch.clear_autocast_cache()
        self._kept.check_layout()
        self._buffers.adopt()
        self._alive = self.lrs()
        return Reply(lrs=self._alive)

    def _bring_sums(self, order: Order) -> None:
        if order.device_sums:
            assert self._places is not None
            self._places.bring(order.device_sums, order.factor, order.slots, self._sums.flat,
                               self._flat_means)
        else:
            self._sums.bring()

    def _apply(self, order: Order, ended_epochs: int) -> Reply:
        """The script's code here must come out alike on every worker, whatever slots it had. So it
        finds the buffers of the step before, generators that no slot has drawn from, and no casts
        of the weights before."""
        parameters, owned = self._kept.parameters, self._phases.owned(self._turn)
        self._buffers.restore()
        torch.clear_autocast_cache()
        _seeds.seed_all(order.task.seed)
        self._bring_sums(order)
        unkept = self._unkept
        if unkept is not None:
            unkept.remember()
        with self._kept.applying():
            for index, (parameter, view, used) in enumerate(
                    zip(parameters, self._views, self._used.tolist())):
                tensor, is_ours = parameter.tensor, owned is None or index in owned
                if used <= 0 or not is_ours:
                    tensor.grad = None
                else:
                    tensor.grad = view if tensor.dtype is view.dtype else view.to(tensor.dtype)
            was_applied = self._update()
            if was_applied:
                self._buffers.advance(self._means)
            self._advance(was_applied, ended_epochs)
        if unkept is not None and was_applied:
            unkept.say()
            self._unkept = None
        self._gradients.clear()
        torch.clear_autocast_cache()
        if self._kept.update is not None or self._kept.after_step is not None:
            self._kept.check_layout()
            self._buffers.adopt()  # they may have changed any
        if not order.device_sums:
            self._sums.give_back()
        self._alive = self.lrs()
        return Reply(lrs=self._alive, skipped=not was_applied)

    def _update(self) -> bool:
        """False: gradients overflowed, and the weights stay as they are."""
        kept, scaler = self._kept, self._scaler
        optimizers = [optimizer for optimizer in self._phases.optimizers(self._turn).values()
                      if scaler is None or _has_gradients(optimizer)]
        if scaler is not None and optimizers:
            scaler.unscale(optimizers)
            if not _are_finite(kept.parameters):  # of all optimizers, or weights would part
                scaler.update()
                return False
        if kept.update is not None:
            kept.update()
        else:
            if self._clip_norm is not None:
                torch.nn.utils.clip_grad_norm_([p.tensor for p in kept.parameters],
                                               self._clip_norm)
            for optimizer in optimizers:
                optimizer.step()
        if scaler is not None and optimizers:
            scaler.update()
        return True

    def _advance(self, was_applied: bool, ended_epochs: int) -> None:
        kept, stepped = self._kept, self._phases.optimizers(self._turn).values()
        for name, scheduler in kept.schedulers.items():
            has_stepped = was_applied and any(scheduler.optimizer is o for o in stepped)
            for _ in range(times_due(name, scheduler, has_stepped, ended_epochs)):
                with kept.pacing():
                    scheduler.step()
        if was_applied and kept.after_step is not None:
            kept.after_step()

    def _describe(self) -> Reply:
        self._buffers.restore()  # a slot may have been aborted
        try:
            entries = self._kept.describe()
        except (MisuseError, StateError) as why:
            return _refusal(why)
        rows = [(e.name, e.shape, e.tensor.data_ptr(), e.tensor.numel() * e.tensor.element_size(),
                 _core.SECTIONS.index(e.section), dtype_number(e.tensor.dtype), False)
                for e in entries]
        array, kept = _core.tensors_of(rows)
        self._alive = (entries, array, kept)
        return Reply(tensors=array, tensor_count=len(array))

    def _install(self, order: Order) -> Reply:
        buffers = {buffer.name for buffer in self._kept.buffers}
        entries = {}
        for tensor in order.tensors[:order.tensor_count]:
            name, section = tensor.name.decode(), _core.SECTIONS[tensor.section]
            if section != "optimizer":  # files keep parameters and buffers together
                section = "buffer" if name in buffers else "parameter"
            entries[(section, name)] = _tensor_at(tensor)
        try:
            self._kept.install(entries)
        except (MisuseError, StateError) as why:
            return _refusal(why)
        torch.clear_autocast_cache()  # it holds casts of the weights before
        self._buffers.adopt()
        self._alive = self.lrs()
        return Reply(lrs=self._alive)


def _has_gradients(optimizer: Any) -> bool:
    return any(p.grad is not None for group in optimizer.param_groups for p in group["params"])


def _are_finite(parameters: list[Any]) -> bool:
    found = [torch.isfinite(p.tensor.grad).all() for p in parameters if p.tensor.grad is not None]
    return not found or bool(torch.stack(found).all())  # waits for a GPU once


def _refusal(why: Exception) -> Reply:
    return Reply(code=BAD_DATA, text=text_of(why))


def _tensor_at(tensor: Any) -> torch.Tensor:
    """A view of the core's memory."""
    shape, dtype = tuple(tensor.shape[:tensor.dims]), _DTYPES[tensor.dtype]
    if tensor.bytes == 0:
        return torch.empty(shape, dtype=dtype)
    memory = (ctypes.c_uint8 * tensor.bytes).from_address(tensor.data)
    return torch.frombuffer(memory, dtype=torch.uint8).view(dtype).view(shape)
