"""Runs the model itself, and notes what torch.export would drop or freeze."""
from __future__ import annotations

import contextlib
import inspect
import random
import sys
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.utils import _pytree

from ._example import Example
from ._lines import line_of_caller

_SEED = 1
# Attributes that nn.Module keeps in __dict__ for itself.
_OF_MODULE = frozenset(nn.Module().__dict__) - {"training"}


class Computed(NamedTuple):
    output: Any
    tensors: list[torch.Tensor]  # of `output`, detached
    gradients: dict[str, torch.Tensor | None]  # of a number that depends on every output


def computed(forward: Callable[..., Any], parameters: dict[str, nn.Parameter], example: Example,
             samples: int, before_backward: Callable[[torch.Tensor], None] | None = None) -> Computed:
    """Runs forward with the generators seeded, so that dropout draws the same each time. Without
    `parameters` there are no gradients, and no graph. before_backward: gets the number that depends
    on every output."""
    args, kwargs = example.copied(samples)
    with torch.random.fork_rng(), torch.set_grad_enabled(bool(parameters)), _no_fused_encoder():
        torch.manual_seed(_SEED)
        output = forward(*args, **kwargs)
        score = _score(output)
        if before_backward is not None:
            before_backward(score)
        gradients: dict[str, torch.Tensor | None] = dict.fromkeys(parameters)
        if score.requires_grad:
            found = torch.autograd.grad(score, list(parameters.values()), allow_unused=True)
            gradients = dict(zip(parameters, found, strict=True))
    return Computed(output, [tensor.detach().clone() for tensor in _tensors(output)], gradients)


@contextlib.contextmanager
def _no_fused_encoder() -> Iterator[None]:
    """Without a gradient nn.TransformerEncoder takes a fused kernel, which adds in another order; a
    program has the operators of the layers."""
    before = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(before)


def _tensors(output: Any) -> list[torch.Tensor]:
    return [leaf for leaf in _pytree.tree_leaves(output) if isinstance(leaf, torch.Tensor)]


def _score(output: Any) -> torch.Tensor:
    generator = torch.Generator().manual_seed(_SEED)
    parts = [tensor.float() for tensor in _tensors(output) if tensor.is_floating_point()]
    if not parts:
        return torch.zeros(())
    weights = [torch.rand(part.shape, generator=generator).to(part.device) + 0.5 for part in parts]
    return torch.stack([(part * weight).sum()
                        for part, weight in zip(parts, weights, strict=True)]).sum()


class Kept:
    """Keeps the model's modes, buffers and attributes, and restores them at the end."""

    def __init__(self, model: nn.Module) -> None:
        self._modules = [(module, module.training, _attributes(module)) for module in model.modules()]
        self._buffers = [(module, name, buffer, buffer.detach().clone())
                         for module in model.modules()
                         for name, buffer in module._buffers.items()  # noqa: SLF001
                         if buffer is not None]

    def __enter__(self) -> Kept:
        return self

    def __exit__(self, *_: object) -> None:
        self.put_back()
        for module, mode, _before in self._modules:
            module.training = mode

    def changed_buffers(self, model: nn.Module) -> Iterator[
            tuple[str, torch.Tensor, torch.Tensor, nn.Module]]:
        """Name, value before and now, module."""
        names = {module: path for path, module in model.named_modules()}
        for module, name, _buffer, value in self._buffers:
            now = module._buffers[name]  # noqa: SLF001
            if now is not None and not (now.shape == value.shape and now.dtype == value.dtype
                                        and torch.equal(now, value)):
                yield f"{names[module]}.{name}".lstrip("."), value, now, module

    def put_back(self) -> None:
        """Restores all but the modes."""
        self.put_back_buffers()
        for module, _mode, before in self._modules:
            for name in _attributes(module).keys() - before.keys():
                del module.__dict__[name]
            module.__dict__.update(before)

    def put_back_buffers(self) -> None:
        with torch.no_grad():
            for module, name, buffer, value in self._buffers:
                module._buffers[name] = buffer  # noqa: SLF001
                buffer.copy_(value)


def _attributes(module: nn.Module) -> dict[str, Any]:
    return {name: value for name, value in module.__dict__.items()
            if name not in _OF_MODULE and name != "training"}


class Backward(NamedTuple):
    functions: dict[type, str]  # torch.autograd.Functions, and the lines of their backward
    leaves: list[torch.Tensor]  # what gradients flow to


def backward_of(score: torch.Tensor) -> Backward:
    found = Backward({}, [])
    seen, left = set(), [score.grad_fn]
    while left:
        node = left.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if isinstance(node, torch.autograd.function.BackwardCFunction):
            kind = type(node)._forward_cls  # noqa: SLF001
            found.functions[kind] = _place_of(kind.backward)
        if hasattr(node, "variable"):
            found.leaves.append(node.variable)
        left += [after for after, _ in node.next_functions]
    return found


def _place_of(function: Callable[..., Any]) -> str:
    code = getattr(inspect.unwrap(function), "__code__", None)
    return f"{code.co_filename}, line {code.co_firstlineno}" if code else ""


@contextlib.contextmanager
def seen_hooks() -> Iterator[list[str]]:
    """The lines that register hooks on tensors meanwhile."""
    lines: list[str] = []
    before = {name: getattr(torch.Tensor, name)
              for name in ("register_hook", "register_post_accumulate_grad_hook")}

    def noting(register: Callable[..., Any]) -> Callable[..., Any]:
        def note(tensor: torch.Tensor, hook: Callable[..., Any]) -> Any:
            lines.append(line_of_caller())
            return register(tensor, hook)
        return note

    for name, register in before.items():
        setattr(torch.Tensor, name, noting(register))
    try:
        yield lines
    finally:
        for name, register in before.items():
            setattr(torch.Tensor, name, register)


def generators_used(call: Callable[[], Any]) -> tuple[Any, list[str]]:
    """Returns the result of `call`, and the generators besides torch's that it draws from."""
    states: dict[str, tuple[Callable[[], Any], Callable[[Any], Any]]] = {
        "Python's random": (random.getstate, random.setstate)}
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        states["numpy.random"] = (lambda: numpy.random.get_state(legacy=False),
                                  numpy.random.set_state)
    before = {name: get() for name, (get, _) in states.items()}
    try:
        result = call()
        used = [name for name, (get, _) in states.items() if repr(get()) != repr(before[name])]
    finally:
        for name, (_, put) in states.items():
            put(before[name])
    return result, used


def numbers(model: nn.Module) -> dict[str, Any]:
    """Attributes of modules that are plain numbers or texts."""
    return {f"{path}.{name}".lstrip("."): value for path, module in model.named_modules()
            for name, value in _attributes(module).items()
            if isinstance(value, (bool, int, float, str)) or value is None}


def _inside(value: Any) -> list[Any]:
    """The value of an attribute, or the parts of a list, a tuple or a dictionary."""
    if isinstance(value, (list, tuple)):
        return list(value)
    return list(value.values()) if isinstance(value, dict) else [value]


def left_with_gradient(model: nn.Module) -> list[str]:
    """Attributes that hold results of a forward through which a gradient would flow."""
    found = []
    for path, module in model.named_modules():
        # torch.nn.utils.weight_norm and its kind put the weight there, for the forward alone.
        computed_weights = {getattr(hook, "name", None) for hook in module._forward_pre_hooks.values()}  # noqa: SLF001
        for name, value in _attributes(module).items():
            if name in computed_weights or isinstance(value, nn.Module):
                continue
            if any(isinstance(one, torch.Tensor) and one.grad_fn is not None for one in _inside(value)):
                found.append(f"{path}.{name}".lstrip("."))
    return found


def holder_of(model: nn.Module, tensor: torch.Tensor) -> str:
    """The attribute that holds a parameter which nn.Module does not know; empty: none found."""
    for path, module in model.named_modules():
        for name, value in _attributes(module).items():
            inside = _inside(value)
            inside += [own for one in inside if isinstance(one, nn.Module)
                       for own in one.parameters()]
            if any(one is tensor for one in inside):
                return f"{path}.{name}".lstrip(".")
    return ""
