"""Hooks that take the gradients of the loop's body while backward makes them.

In a slot a hook takes every parameter's gradient as soon as it is complete, and sets `.grad` to
None. So gradients are copied once, and sums travel while backward goes on.
"""
from __future__ import annotations

from typing import Any, Callable

import torch

from ._core import DTYPES
from ._errors import Misuse

_NUMBER_OF = {getattr(torch, name): number for number, name in enumerate(DTYPES)}
_SUMMED = (torch.float32, torch.bfloat16, torch.float16)


def dtype_number(dtype: torch.dtype) -> int:
    return _NUMBER_OF[dtype]


def dense_strides(tensor: torch.Tensor) -> tuple[int, ...]:
    """The strides of its gradients: its own if it is dense, else row-major."""
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
        # Indices of the parameters that the present loss is for; None: all of them.
        self.wanted: frozenset[int] | None = None
        for index, parameter in enumerate(parameters):
            if parameter.tensor.dtype not in _SUMMED:
                raise Misuse(f"{parameter.name} is of {parameter.tensor.dtype}, but only float32, "
                             "bfloat16 and float16 are trained; convert the model")
            parameter.tensor.grad = None
            self._handles.append(self._hooked(parameter.tensor, self._hook(index)))

    def remove(self) -> None:
        """After the loop the script may compute gradients of its own."""
        for handle in self._handles:
            handle.remove()

    @staticmethod
    def _hooked(tensor: torch.Tensor, hook: Callable[[torch.Tensor], None]) -> Any:
        """Hooks a parameter, even one that is frozen now: its hook waits until it is not."""
        requires = tensor.requires_grad
        handle = tensor.requires_grad_(True).register_post_accumulate_grad_hook(hook)
        tensor.requires_grad_(requires)
        return handle

    def _hook(self, index: int):
        def take(tensor: torch.Tensor) -> None:
            grad, tensor.grad = tensor.grad, None
            if not self.is_open:
                raise Misuse("loss.backward() in the loop's body: call run.backward(loss), which "
                             "divides by the samples of the step and sums while backward goes on")
            if self.wanted is not None and index not in self.wanted:
                return
            if grad is None:
                raise Misuse(f"a hook of the script's frees the gradient of "
                             f"{self._parameters[index].name} before Lockstep has taken it; let it "
                             "leave `.grad` as it is, which Lockstep frees itself")
            if grad.layout is not torch.strided:
                raise Misuse(f"the gradient of {self._parameters[index].name} is sparse; make the "
                             "embedding with sparse=False")
            self.sink(index, self._in_order(index, grad))

        return take

    def _in_order(self, index: int, grad: torch.Tensor) -> torch.Tensor:
        strides = self._strides[index]
        if grad.stride() == strides and not grad.is_neg():
            return grad
        return torch.empty_strided(grad.shape, strides, dtype=grad.dtype,
                                   device=grad.device).copy_(grad)

    def are_frozen(self, wanted: frozenset[int] | None) -> bool:
        """Whether none of these parameters gets a gradient now. `wanted`: as above."""
        return not any(p.tensor.requires_grad for i, p in enumerate(self._parameters)
                       if wanted is None or i in wanted)

    def clear(self) -> None:
        for parameter in self._parameters:
            parameter.tensor.grad = None

    def views_of(self, flat: torch.Tensor, begins: list[int]) -> list[torch.Tensor]:
        """Views of the summed gradients, in the parameters' shapes and memory order."""
        return [torch.as_strided(flat, parameter.tensor.shape, strides, begin)
                for parameter, strides, begin in zip(self._parameters, self._strides, begins)]
