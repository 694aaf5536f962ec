"""Compares a program with its model: outputs, gradients and buffers after a forward.

On CPUs the program calls the model's operators in the model's order, so the bits are the same.
There are two exceptions: forward takes other operators during an export (attention in
transformers), or PyTorch itself adds in a changing order (index_add on several threads, atomics on
GPUs). There, sums of float32 may differ by TOLERANCE.
"""
from __future__ import annotations

import warnings
from typing import Any

import torch
from torch import nn

from .._errors import Misuse
from ._example import Example
from ._lines import at, line_of_error
from ._model import trained
from ._watch import Computed, Kept, computed

TOLERANCE = 1e-3  # of a tensor's largest value


def distance(mine: torch.Tensor | None, theirs: torch.Tensor | None, least: float = 0.0) -> float:
    """0: the same bits, or both not finite in the same places. Else a share of the largest value,
    or of `least` if that is more. A missing gradient counts as zero."""
    if mine is None or theirs is None:
        one = mine if theirs is None else theirs
        return 0.0 if one is None or not bool(one.any()) else float("inf")
    if mine.shape != theirs.shape or mine.dtype != theirs.dtype:
        return float("inf")
    if torch.equal(mine, theirs):
        return 0.0
    if not mine.is_floating_point():
        return float("inf")
    one, other = mine.double(), theirs.double()
    apart = torch.where((one == other) | (one.isnan() & other.isnan()), 0.0, (one - other).abs())
    finite = one[one.isfinite()].abs()
    most = max(float(finite.max()) if finite.numel() else 0.0, least)
    worst = float(apart.nan_to_num(nan=float("inf")).max())
    return worst / most if most > 0 else (0.0 if worst == 0 else float("inf"))


def _buffers(module: nn.Module) -> dict[str, torch.Tensor]:
    return {name: buffer.detach().clone() for name, buffer in module.named_buffers()}


def compare(model: nn.Module, program: Any, example: Example, sizes: list[int], kept: Kept,
            mode: str) -> None:
    """Compares batches of `sizes`, from the largest on. Raises Misuse; warns if only the bits
    differ. REQUIRES: the model is in the program's mode."""
    shapes: list[torch.Size] = []
    for samples in sizes:
        output = _compare(model, program, example, samples, kept, mode)
        if not shapes:
            shapes = [tensor.shape for tensor in output.tensors]
        for of_most, tensor in zip(shapes, output.tensors, strict=True):
            wanted = (samples, *of_most[1:]) if of_most[:1] == (sizes[0],) else of_most
            if tensor.shape != wanted:
                raise Misuse(f"forward gives {tuple(tensor.shape)} for {samples} "
                             f"sample{'s' if samples > 1 else ''} in {mode}, and {tuple(of_most)} for "
                             f"{sizes[0]}; keep the first dimension, as squeeze(1) does where "
                             f"squeeze() does not")


def _compare(model: nn.Module, program: Any, example: Example, samples: int, kept: Kept,
             mode: str) -> Computed:
    copy = program.module()  # it has the model's own tensors
    parameters = trained(model) if model.training else {}
    theirs = dict(copy.named_parameters(remove_duplicate=False))
    of_program = {name: theirs[name] for name in parameters if name in theirs}
    kept_copy = Kept(copy)
    try:
        mine = _of_model(model, parameters, example, samples, mode)
        my_buffers = _buffers(model)
        kept.put_back()
        other = computed(copy, of_program, example, samples)
        other_buffers = _buffers(copy)
    finally:
        kept_copy.put_back()
        kept.put_back()
    apart = _distances(mine, my_buffers, other, other_buffers)
    far = [name for name, far in apart.items() if not far <= TOLERANCE]
    if far:
        raise Misuse(f"the program for {mode} computes otherwise than the model with {samples} "
                     f"sample{'s' if samples > 1 else ''}: "
                     f"{', '.join(far[:4])}{f' and {len(far) - 4} more' if len(far) > 4 else ''} differ"
                     f"{'s' if len(far) == 1 else ''}. torch.export follows the operators of forward "
                     f"alone: look for what a backward does besides (hooks on nodes of the graph, "
                     f"saved_tensors_hooks) and for what forward does only outside of an export; or "
                     f"train the model in a loop of Python (SCRIPTS.md)")
    worst = max(apart, key=lambda name: apart[name], default="")
    if worst and apart[worst] > 0:
        warnings.warn(f"the program for {mode} computes what the model does, but not bit for bit: "
                      f"{worst} differs by {apart[worst]:.1e} of its largest value, as sums of float32 "
                      f"in another order do", stacklevel=5)
    return mine


def _of_model(model: nn.Module, parameters: dict[str, nn.Parameter], example: Example, samples: int,
              mode: str) -> Computed:
    try:
        return computed(model, parameters, example, samples)
    except Exception as error:
        if samples >= example.samples:
            raise
        raise Misuse(f"forward fails in {mode} with {samples} of the {example.samples} samples of "
                     f"{example.what}{at(line_of_error(error))}: {error}; write it for every number "
                     f"of samples, or give least_samples={samples + 1}") from error


def _distances(mine: Computed, my_buffers: dict[str, torch.Tensor], theirs: Computed,
               their_buffers: dict[str, torch.Tensor]) -> dict[str, float]:
    if len(mine.tensors) != len(theirs.tensors):
        return {"the number of outputs": float("inf")}
    apart = {f"output {i}" if len(mine.tensors) > 1 else "the output": distance(one, other)
             for i, (one, other) in enumerate(zip(mine.tensors, theirs.tensors, strict=True))}
    # Some gradients are zero but for rounding, such as the one of the bias of attention's keys.
    most = max((float(gradient.abs().max()) for gradient in mine.gradients.values()
                if gradient is not None and gradient.numel()), default=0.0)
    apart |= {f"the gradient of {name}": distance(gradient, theirs.gradients.get(name), 1e-4 * most)
              for name, gradient in mine.gradients.items()}
    return apart | {f"the buffer {name}": distance(value, their_buffers[name])
                    for name, value in my_buffers.items() if name in their_buffers}
