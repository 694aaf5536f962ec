"""Programs for `model.name: exported`, saved only where they train as the model does.

torch.export follows the operators of a forward. What a model adds to its backward is not in the
program: torch.autograd.Function with a backward of its own, hooks on tensors, parameters and modules.
So the gradients of the program are compared with the model's, on the example.
"""
from __future__ import annotations

import os
from typing import Any, Callable

import torch
from torch import nn
from torch.utils import _pytree

from ._errors import Misuse

_SEED = 1
_TOLERANCE = 1e-3  # of a gradient's largest value: attention is computed in another order


def save_programs(model: nn.Module, example: Any, path: str | os.PathLike[str],
                  most_samples: int) -> tuple[str, str]:
    examples = example if isinstance(example, tuple) else (example,)
    whole = os.fspath(path)
    stem = whole[:-len(".pt2")] if whole.endswith(".pt2") else whole
    names = (f"{stem}.pt2", f"{stem}.eval.pt2")
    was_training = model.training
    _check_hooks(model)
    try:
        model.train()
        training = _exported(model, examples, most_samples)
        _check_gradients(model, training, examples)
        model.eval()
        evaluation = _exported(model, examples, most_samples)
    finally:
        model.train(was_training)
    for program, name in zip((training, evaluation), names, strict=True):
        half = f"{name}.{os.getpid()}.tmp.pt2"
        torch.export.save(program, half)
        os.replace(half, name)
    return names


def _exported(model: nn.Module, examples: tuple[Any, ...], most_samples: int) -> Any:
    samples = torch.export.Dim("batch", min=1, max=most_samples)
    return torch.export.export(model, examples, dynamic_shapes=({0: samples},) * len(examples))


def _check_hooks(model: nn.Module) -> None:
    for name, parameter in model.named_parameters():
        if parameter._backward_hooks or parameter._post_accumulate_grad_hooks:  # noqa: SLF001
            raise Misuse(f"the parameter {name} has a hook, which torch.export drops: the program "
                         f"would train without it; remove the hook")
    for name, module in model.named_modules():
        if module._backward_hooks or module._backward_pre_hooks:  # noqa: SLF001
            raise Misuse(f"the module {name or type(model).__name__} has a backward hook, which "
                         f"torch.export drops: the program would train without it; remove the hook")


class _SeenHooks:
    """Notes where a forward registers hooks on tensors."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def __enter__(self) -> _SeenHooks:
        self._register = torch.Tensor.register_hook
        register, lines = self._register, self.lines

        def noting(tensor: torch.Tensor, hook: Callable[..., Any]) -> Any:
            code = getattr(hook, "__code__", None)
            lines.append(f"{code.co_filename}, line {code.co_firstlineno}" if code else repr(hook))
            return register(tensor, hook)

        torch.Tensor.register_hook = noting  # type: ignore[method-assign]
        return self

    def __exit__(self, *_: object) -> None:
        torch.Tensor.register_hook = self._register  # type: ignore[method-assign]


def _score(output: Any) -> torch.Tensor:
    """A number that depends on every element that the model gives."""
    generator = torch.Generator().manual_seed(_SEED)
    parts = [tensor.float() for tensor in _pytree.tree_leaves(output)
             if isinstance(tensor, torch.Tensor) and tensor.is_floating_point()]
    weights = [torch.rand(part.shape, generator=generator).to(part.device) + 0.5 for part in parts]
    return torch.stack([(part * weight).sum()
                        for part, weight in zip(parts, weights, strict=True)]).sum()


def _gradients(forward: Callable[..., Any], parameters: dict[str, nn.Parameter],
               examples: tuple[Any, ...]) -> tuple[dict[str, torch.Tensor | None], Any]:
    with torch.random.fork_rng(), torch.enable_grad():
        torch.manual_seed(_SEED)
        score = _score(forward(*_pytree.tree_map(_copied, examples)))
        if not score.requires_grad:
            return dict.fromkeys(parameters), score
        found = torch.autograd.grad(score, list(parameters.values()), allow_unused=True,
                                    retain_graph=True)
    return dict(zip(parameters, found, strict=True)), score


def _copied(value: Any) -> Any:
    return value.clone() if isinstance(value, torch.Tensor) else value


def _own_backwards(score: torch.Tensor) -> set[str]:
    """The torch.autograd.Functions that a forward has called."""
    found, seen, left = set(), set(), [score.grad_fn]
    while left:
        node = left.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if isinstance(node, torch.autograd.function.BackwardCFunction):
            found.add(type(node).__name__.removesuffix("Backward"))
        left += [after for after, _ in node.next_functions]
    return found


def _trained(model: nn.Module) -> dict[str, nn.Parameter]:
    return {name: parameter for name, parameter in model.named_parameters()
            if parameter.requires_grad}


def _differs(mine: torch.Tensor | None, theirs: torch.Tensor | None) -> bool:
    if mine is None or theirs is None:
        one = mine if theirs is None else theirs
        return one is not None and bool(one.abs().max() > 0)
    most = mine.abs().max()
    return not bool((mine - theirs).abs().max() <= _TOLERANCE * most + torch.finfo(mine.dtype).tiny)


def _check_gradients(model: nn.Module, program: Any, examples: tuple[Any, ...]) -> None:
    before = [(buffer, buffer.detach().clone()) for buffer in model.buffers()]

    def put_back() -> None:
        with torch.no_grad():
            for buffer, value in before:
                buffer.copy_(value)

    parameters, copy = _trained(model), program.module()  # which has the model's own tensors
    try:
        with _SeenHooks() as hooks:
            eager, score = _gradients(model, parameters, examples)
        put_back()
        exported, _ = _gradients(copy, _trained(copy), examples)
    finally:
        put_back()
    differing = [name for name, gradient in eager.items()
                 if _differs(gradient, exported.get(name))]
    if not differing:
        return
    causes = [f"the backward of {name}" for name in sorted(_own_backwards(score))]
    causes += [f"the hook of {line}" for line in hooks.lines]
    raise Misuse(f"the exported program gives other gradients than the model for "
                 f"{', '.join(differing[:4])}{' and more' if len(differing) > 4 else ''}: "
                 f"torch.export drops {', '.join(causes) or 'what a backward does beside operators'}."
                 f" Write it with operators, such as x + (f(x) - x).detach() for a straight-through "
                 f"estimator, or train the model in a loop of Python (SCRIPTS.md)")
