"""Refuses a model whose own forward shows that no program can compute the same."""
from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping
from typing import Any

import torch
from torch import nn

from .._errors import Misuse
from ._compare import TOLERANCE, distance
from ._example import Example
from ._lines import at, line_of_error
from ._model import trained
from ._watch import (Computed, Kept, backward_of, computed, generators_used, holder_of,
                     left_with_gradient, numbers, seen_hooks)

_LOOP = "or train the model in a loop of Python (SCRIPTS.md)"


def check_training(model: nn.Module, example: Example, kept: Kept,
                   derivatives: Collection[type]) -> None:
    """REQUIRES: training mode. Leaves the buffers as they were."""
    with seen_hooks() as hooks:
        first = computed(model, trained(model), example, example.samples,
                         lambda score: _check_backwards(model, score, hooks, derivatives))
    if attributes := left_with_gradient(model):
        raise Misuse(f"forward leaves a result with a gradient in {attributes[0]}, and a loss that is "
                     f"made of it is not in the program; return it from forward in a dictionary with "
                     f"\"loss\" (LOSSES.md), or store it with detach()")
    _check_buffers(model, kept)
    _check_output(first.output, "training")
    _check_repeats(model, example, kept, first, "training")


def check_evaluation(model: nn.Module, example: Example, kept: Kept) -> None:
    """REQUIRES: evaluation mode. Leaves the buffers as they were."""
    try:
        first = computed(model, {}, example, example.samples)
    except RuntimeError as error:
        raise Misuse(f"forward fails in evaluation, where a job computes no gradients"
                     f"{at(line_of_error(error))}: {error}") from error
    _check_output(first.output, "evaluation")
    _check_repeats(model, example, kept, first, "evaluation")


def _check_backwards(model: nn.Module, score: torch.Tensor, hooks: list[str],
                     derivatives: Collection[type]) -> None:
    if hooks:
        raise Misuse(f"forward registers a hook on a tensor{at(hooks[0])}, which torch.export drops: "
                     f"the program would train without it; write it with operators, {_LOOP}")
    found = backward_of(score)
    known = {id(parameter) for parameter in model.parameters()}
    for leaf in found.leaves:
        if isinstance(leaf, nn.Parameter) and id(leaf) not in known:
            raise Misuse(f"{holder_of(model, leaf) or 'a global variable'} holds a parameter that "
                         f"{type(model).__name__}.parameters() does not have, and that would stay as "
                         f"it is; keep parameters in attributes of their own, nn.ParameterList or "
                         f"nn.ParameterDict, and modules in nn.ModuleList or nn.ModuleDict")
    for kind, line in found.functions.items():
        # torch._library and torch._higher_order_ops: as operators, which the program shows.
        if kind in derivatives or kind.__module__.startswith("torch._"):
            continue
        if kind.__module__ == "torch.utils.checkpoint":
            raise Misuse("forward calls torch.utils.checkpoint with use_reentrant=True, whose backward "
                         "torch.export drops; set use_reentrant=False")
        raise Misuse(f"torch.export drops the backward of {kind.__qualname__}{at(line)}: the program "
                     f"would train with the derivatives of its forward. Write it with operators, such "
                     f"as x + (f(x) - x).detach() for a straight-through estimator, {_LOOP}. If its "
                     f"backward is nothing but these derivatives, say "
                     f"derivatives=[{kind.__qualname__}]: the gradients are compared")


def _check_buffers(model: nn.Module, kept: Kept) -> None:
    averaged = []
    for name, before, now, module in kept.changed_buffers(model):
        if isinstance(module, nn.modules.batchnorm._NormBase):  # noqa: SLF001
            continue
        if now.dtype == torch.int64 and now.shape == before.shape and torch.equal(now, before + 1):
            continue
        if now.dtype != torch.float32 or now.shape != before.shape:
            raise Misuse(f"forward changes the buffer {name}, {str(now.dtype).removeprefix('torch.')} "
                         f"of shape {tuple(now.shape)}, and Lockstep keeps float32 statistics and "
                         f"int64 counters that grow by one; make it one of these, {_LOOP}")
        averaged.append(name)
    if averaged:
        warnings.warn(f"forward changes {', '.join(averaged)}: in a job the value after a step is the "
                      f"mean over the slots of the step, each of which begins with the last step's "
                      f"value (MODELS.md)", stacklevel=5)


def _check_output(output: Any, mode: str) -> None:
    if isinstance(output, torch.Tensor):
        return
    wanted = ("let forward return the logits or the losses as one tensor, or a dictionary with "
              "\"loss\" (LOSSES.md)")
    if not isinstance(output, Mapping):
        raise Misuse(f"forward gives a {type(output).__name__}"
                     + (f" of {len(output)}" if isinstance(output, (list, tuple)) else "")
                     + f" in {mode}; {wanted}")
    others = [key for key, value in output.items() if not isinstance(value, torch.Tensor)]
    if others or (len(output) != 1 and "loss" not in output):
        raise Misuse(f"forward gives a dictionary with {', '.join(map(str, output))} in {mode}"
                     + (f", and {others[0]} is no tensor" if others else "") + f"; {wanted}")


def _check_repeats(model: nn.Module, example: Example, kept: Kept, first: Computed,
                   mode: str) -> None:
    """Raises unless a second forward, with the attributes of the first, gives the same."""
    kept.put_back_buffers()
    before = numbers(model)
    second, generators = generators_used(
        lambda: computed(model, trained(model) if model.training else {}, example,
                         example.samples))
    after = numbers(model)
    kept.put_back()
    if generators:
        raise Misuse(f"forward draws from {generators[0]} in {mode}: the program would keep what was "
                     f"drawn at the export; draw with torch, such as torch.rand(())")
    changed = [name for name, value in after.items()
               if name in before and value != before[name]]
    if changed:
        raise Misuse(f"forward changes the attribute {changed[0]} in {mode}: the program would keep "
                     f"its value of the export; make it a buffer, or leave it out")
    if any(distance(one, other) > TOLERANCE for one, other in
           zip(first.tensors, second.tensors, strict=True)):
        raise Misuse(f"forward gives other results for the same batch, seed and buffers in {mode}: it "
                     f"depends on something outside of the module's parameters and buffers, of which "
                     f"the program would keep one value; make it a buffer or an input")
