"""What the loop's body leaves behind: gradients, which hooks take as backward makes them, and buffers.

In a slot every parameter's gradient is taken as soon as it is complete, and `.grad` is None again. So
gradients are copied once, and sums travel while backward goes on.
"""
from __future__ import annotations

import ctypes
from typing import Any, Callable

import torch

from ._core import DTYPES
from ._errors import Misuse
from ._state import same_bits

_NUMBER_OF = {getattr(torch, name): number for number, name in enumerate(DTYPES)}
_SUMMED = (torch.float32, torch.bfloat16, torch.float16)
_SMALL_BUFFER = 1 << 20  # bytes; larger ones are compared in the trial only


def dtype_number(dtype: torch.dtype) -> int:
    return _NUMBER_OF[dtype]


def dense_strides(tensor: torch.Tensor) -> tuple[int, ...]:
    """The strides of its gradients: its own where it is dense, else row-major."""
    if torch.ops.aten.is_non_overlapping_and_dense.default(tensor):
        return tensor.stride()
    return torch.empty(tensor.shape, device="meta").stride()


class Gradients:
    """Hooks on the trained parameters. `sink` gets (index, gradient in the parameter's order)."""

    def __init__(self, parameters: list[Any]):
        self._parameters = parameters
        self._strides = [dense_strides(p.tensor) for p in parameters]
        self.sink: Callable[[int, torch.Tensor], None] = lambda *_: None
        self._handles: list[Any] = []
        self.is_open = False  # only run.backward() may make gradients
        for index, parameter in enumerate(parameters):
            if parameter.tensor.dtype not in _SUMMED:
                raise Misuse(f"{parameter.name} is of {parameter.tensor.dtype}, but only float32, "
                             "bfloat16 and float16 are trained; convert the model")
            parameter.tensor.grad = None
            self._handles.append(
                parameter.tensor.register_post_accumulate_grad_hook(self._hook(index)))

    def remove(self) -> None:
        """Behind the loop the script may compute gradients of its own."""
        for handle in self._handles:
            handle.remove()

    def _hook(self, index: int):
        def take(tensor: torch.Tensor) -> None:
            grad, tensor.grad = tensor.grad, None
            if not self.is_open:
                raise Misuse("loss.backward() in the loop's body: call run.backward(loss), which "
                             "divides by the samples of the step and sums while backward goes on")
            if grad.layout is not torch.strided:
                raise Misuse(f"the gradient of {self._parameters[index].name} is sparse; make the "
                             "embedding with sparse=False")
            self.sink(index, self._in_order(index, grad))

        return take

    def _in_order(self, index: int, grad: torch.Tensor) -> torch.Tensor:
        strides = self._strides[index]
        if grad.stride() == strides and not grad.is_neg():
            return grad
        return torch.empty_strided(grad.shape, strides, dtype=grad.dtype, device="cpu").copy_(grad)

    def clear(self) -> None:
        for parameter in self._parameters:
            parameter.tensor.grad = None

    def views_of(self, address: int, floats: int, begins: list[int]) -> list[torch.Tensor]:
        """Views of the summed gradients, in the parameters' shapes and memory order."""
        flat = floats_at(address, floats)
        return [torch.as_strided(flat, parameter.tensor.shape, strides, begin)
                for parameter, strides, begin in zip(self._parameters, self._strides, begins)]


def floats_at(address: int, floats: int) -> torch.Tensor:
    """A view of memory that outlives it."""
    if floats == 0:
        return torch.empty(0)
    return torch.frombuffer((ctypes.c_float * floats).from_address(address), dtype=torch.float32)


class Buffers:
    """Buffers of the model that slots change. Every slot begins with those of the last step."""

    def __init__(self, buffers: list[Any]):
        self._all = buffers
        self._before = {b.name: b.get().detach().clone() for b in buffers}
        self.statistics: list[Any] = []  # floats: averaged over the slots of a step
        self.counters: list[Any] = []    # int64 that grow by one in a slot: by one in a step
        self._watched: list[Any] = []    # small ones that the trial saw unchanged

    def settle(self) -> list[str]:
        """After the trial's first slot: which buffers it changes. The names of all of them."""
        for buffer in self._all:
            before, now = self._before[buffer.name], buffer.get()
            if same_bits(before, now):
                if now.numel() * now.element_size() <= _SMALL_BUFFER:
                    self._watched.append(buffer)
                continue
            if now.dtype == torch.float32 and now.shape == before.shape:
                self.statistics.append(buffer)
            elif now.dtype == torch.int64 and now.shape == before.shape and \
                    torch.equal(now, before + 1):
                self.counters.append(buffer)
            else:
                raise Misuse(f"a slot changes the buffer {buffer.name} ({now.dtype}), which Lockstep "
                             "can neither average (float32) nor count (int64, by one a slot); take "
                             "it out of the model, or change it in run.keep(after_step=...)")
        changing = self.statistics + self.counters
        self._before = {b.name: self._before[b.name] for b in changing + self._watched}
        return [b.name for b in changing]

    @torch.no_grad()
    def restore(self) -> None:
        for buffer in self.statistics + self.counters:
            buffer.get().copy_(self._before[buffer.name])

    def name_of_changed(self) -> str | None:
        """A buffer that the trial's slot has left as it was, and that is another now."""
        for buffer in self._watched:
            if not same_bits(self._before[buffer.name], buffer.get()):
                return buffer.name
        return None

    def check_unchanged(self) -> None:
        name = self.name_of_changed()
        if name is not None:
            raise Misuse(f"a slot changed the buffer {name}, which the trial's slot did not: what a "
                         "slot changes must not depend on the step")

    @torch.no_grad()
    def advance(self, means: list[torch.Tensor]) -> None:
        """A step is applied: `means` of the statistics over its slots."""
        for buffer, mean in zip(self.statistics, means):
            self._before[buffer.name].copy_(mean.view(buffer.get().shape))
        for buffer in self.counters:
            self._before[buffer.name] += 1
        self.restore()

    def adopt(self) -> None:
        """Another state was installed."""
        for buffer in self.statistics + self.counters + self._watched:
            self._before[buffer.name] = buffer.get().detach().clone()
