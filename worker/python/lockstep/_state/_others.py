"""The state of kept objects that are neither modules nor optimizers, and the tensors inside."""

from __future__ import annotations

from typing import Any, Optional

from torch import Tensor

from ._errors import StateError
from ._objects import TensorRef, decode, encode, fill, is_function
from ._tensors import copy_in_order, memory_order


class Collector:
    """Names the tensors that encode() meets.

    One tensor object has one name, however often it occurs, so that shared tensors stay shared.
    `preferred`: names by id(); others are named by their path. `parameters`: names by id(); a
    state that refers to a parameter itself would refer to a copy after install().
    """

    def __init__(self, parameters: Optional[dict[int, str]] = None) -> None:
        self.preferred: dict[int, str] = {}
        self._parameters = parameters or {}
        self.tensors: dict[str, Tensor] = {}
        self._refs: dict[int, TensorRef] = {}

    def __call__(self, tensor: Tensor, path: str) -> TensorRef:
        found = self._refs.get(id(tensor))
        if found is None:
            if id(tensor) in self._parameters:
                raise StateError(path, f"the parameter `{self._parameters[id(tensor)]}` itself",
                                 "keep a copy: detach().clone()")
            name = self.preferred.get(id(tensor), path)
            while name in self.tensors or name == "objects":
                name += "'"
            self.tensors[name] = tensor  # stays alive, so that no other gets its id()
            found = self._refs[id(tensor)] = TensorRef(name, memory_order(tensor),
                                                         not tensor.is_cpu)
        return found


def other_value(kept: Any) -> Any:
    """state_dict(); without functions for torch's own classes, whose constructors make them."""
    value = kept.state_dict()
    return _without_functions(value) if type(kept).__module__.startswith("torch.") else value


def came_later(kept: Any) -> bool:
    """Whether it is an object of Lockstep's own that runs of earlier versions lack: they have
    neither its state, for which state_of_before() stands in, nor a line in their identity."""
    return hasattr(kept, "state_of_before")


def _without_functions(value: Any) -> Any:
    if type(value) is dict:
        return {k: _without_functions(v) for k, v in value.items() if not is_function(v)}
    if type(value) is list:
        return [_without_functions(v) for v in value]
    return value


def copied(value: Any) -> Any:
    """A deep copy of a value that encode() accepts."""
    collector = Collector()
    tree = decode(encode(value, "", collector), "a copy of the state")
    tensors = {name: t.detach().clone() for name, t in collector.tensors.items()}
    return fill(tree, lambda ref: copy_in_order(tensors[ref.name], ref.order, ref.name))
