"""Rules for torch.ao.quantization: the values that observers have seen, and the scales that follow.

A step takes the mean of the least and greatest values that moving averages keep, and min and max of
those that other observers keep. It then computes scale and zero point from the joined values.
"""
from __future__ import annotations

import sys
from typing import Any, Sequence

import torch

from ._rules import MAX, MEAN, MIN

DERIVED = "derived"
_EXTREMES = {"min_val": MIN, "max_val": MAX}
_FOLLOW = ("scale", "zero_point")


def quantisation_rules(buffers: Sequence[Any]) -> dict[str, str]:
    """The rules of all buffers that have one, by name."""
    observers = sys.modules.get("torch.ao.quantization.observer")
    fakes = sys.modules.get("torch.ao.quantization.fake_quantize")
    if observers is None or fakes is None:
        return {}  # so no module is one
    averages = (observers.MovingAverageMinMaxObserver,
                observers.MovingAveragePerChannelMinMaxObserver)
    extremes = (observers.MinMaxObserver, observers.PerChannelMinMaxObserver)
    rules = {}
    for buffer in buffers:
        module, local = buffer.module, buffer.local
        if isinstance(module, extremes) and local in _EXTREMES:
            rules[buffer.name] = MEAN if isinstance(module, averages) else _EXTREMES[local]
        elif isinstance(module, fakes.FakeQuantize) and local in _FOLLOW and \
                isinstance(module.activation_post_process, extremes):
            rules[buffer.name] = DERIVED
    return rules


class Derived:
    """Scales and zero points, each as its module computes it from what its observer has seen.
    `observed`: buffers, which include the observers' own."""

    def __init__(self, buffers: Sequence[Any], observed: Sequence[Any]):
        names = {(id(b.module), b.local): b.name for b in observed}
        self._buffers = [(b, {names.get((id(b.module.activation_post_process), local))
                              for local in _EXTREMES}) for b in buffers]

    @torch.no_grad()
    def follow(self, before: dict[str, torch.Tensor], changed: set[str]) -> None:
        """Computes the scales whose observers changed. A frozen observer's scale may be loaded: it
        stays as it is."""
        for buffer, sources in self._buffers:
            if not changed & sources:
                continue
            value = buffer.module.calculate_qparams()[_FOLLOW.index(buffer.local)]
            before[buffer.name].copy_(value.view(before[buffer.name].shape))
            buffer.get().copy_(before[buffer.name])
