"""The example of an export: the arguments of forward(), by position or by name."""
from __future__ import annotations

import inspect
from typing import Any

import torch
from torch import nn

from .._errors import Misuse


class Example:
    """A batch in the shape of the data. `named` has every argument by its name in forward()."""

    def __init__(self, model: nn.Module, given: Any, what: str) -> None:
        self.what = what
        self.args: tuple[Any, ...] = ()
        self.kwargs: dict[str, Any] = {}
        if isinstance(given, dict):
            self.kwargs = dict(given)
        else:
            self.args = given if isinstance(given, tuple) else (given,)
        signature = inspect.signature(model.forward)
        try:
            self._bound = signature.bind(*self.args, **self.kwargs)
        except TypeError as error:
            raise Misuse(f"{what} does not fit {type(model).__name__}.forward"
                         f"({', '.join(signature.parameters)}): {error}; "
                         f"give a tensor, a tuple in the order of forward's arguments, or a "
                         f"dictionary by their names") from None
        for name in self._bound.arguments:
            if signature.parameters[name].kind is inspect.Parameter.VAR_KEYWORD:
                raise Misuse(f"{type(model).__name__}.forward takes **{name}, which torch.export does "
                             f"not name; write out the arguments that {what} has")
        self.samples = self._check()

    def _tensors(self) -> list[tuple[str, Any]]:
        return [(f"{self.what}[{i}]", value) for i, value in enumerate(self.args)] + [
            (f"{self.what}[{name!r}]", value) for name, value in self.kwargs.items()]

    def _check(self) -> int:
        sizes: dict[str, int] = {}
        for name, value in self._tensors():
            if not isinstance(value, torch.Tensor):
                raise Misuse(f"{name} is a {type(value).__name__}, and a job gives tensors alone; put "
                             f"other arguments into the module, or give them defaults in forward")
            if value.dim() == 0:
                raise Misuse(f"{name} has no dimension; give a batch, whose first dimension is the "
                             f"samples")
            sizes[name] = value.shape[0]
        if not sizes:
            raise Misuse(f"{self.what} is empty; give a batch in the shape of the data")
        if len(set(sizes.values())) > 1:
            raise Misuse(f"the tensors of {self.what} have different numbers of samples: "
                         f"{', '.join(f'{name} {size}' for name, size in sizes.items())}; their "
                         f"first dimension is the batch")
        samples = next(iter(sizes.values()))
        if samples < 2:
            raise Misuse(f"{self.what} has {samples} samples; give at least 2, because torch.export "
                         f"fixes a batch of one")
        return samples

    def inputs(self) -> list[dict[str, Any]]:
        """Name in forward(), type and shape of a batch, for people who open a program."""
        names = [name for name, _ in zip(self._bound.signature.parameters, self.args)]  # noqa: B905
        return [{"name": name, "dtype": str(value.dtype).removeprefix("torch."),
                 "shape": ["batch", *value.shape[1:]]}
                for name, value in [*zip(names, self.args), *self.kwargs.items()]]  # noqa: B905

    def dynamic_shapes(self, least: int, most: int) -> dict[str, Any]:
        """The first dimension of every tensor is one `batch`."""
        batch = {0: torch.export.Dim("batch", min=least, max=most)}
        shapes: dict[str, Any] = {}
        for name, value in self._bound.arguments.items():
            kind = self._bound.signature.parameters[name].kind
            if kind is inspect.Parameter.VAR_POSITIONAL:
                shapes[name] = (batch,) * len(value)
            else:
                shapes[name] = batch
        return shapes

    def copied(self, samples: int) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Copies as arguments for a call, which may write to them; repeats the samples if there are
        too few."""
        def copy(value: torch.Tensor) -> torch.Tensor:
            rows = torch.arange(samples, device=value.device) % len(value)
            return value.detach()[rows].clone()

        return (tuple(copy(value) for value in self.args),
                {name: copy(value) for name, value in self.kwargs.items()})
