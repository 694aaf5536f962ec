"""The states of torchmetrics' metrics that a script gives to run.keep(): what they have counted so far.

A metric has its numbers in plain attributes, and says for each how those of several processes become
one. What they are here is buffers with that rule (_buffers/_rules.py): each slot goes on with what the
step before has left, and a step adds what all its slots have counted.
"""

from __future__ import annotations

from typing import Any, Iterator

from torch import Tensor, nn

from ._errors import MisuseError
from ._named import NamedBuffer
from ._tensors import overlaps_itself, refill

_RULES = {"dim_zero_sum": "sum", "dim_zero_max": "max", "dim_zero_min": "min"}
_INSTEAD = "reset() it before each use, and give its value to run.backward(metrics=…)"


class MetricState(NamedBuffer):
    """A number, or several, that a metric counts in; always a part of the run's state."""

    def get(self) -> Tensor:
        """The tensor that is the state now: reset() makes another one."""
        return getattr(self.module, self.local)

    def set(self, values: Tensor) -> None:
        """Copies `values` into the state. Whatever they are: something was counted."""
        now = self.get()
        if now.shape == values.shape and now.dtype == values.dtype and not overlaps_itself(now):
            refill(now, values)
        else:
            setattr(self.module, self.local, values.detach().clone().to(now.device))
        self.module._update_count = max(1, self.module._update_count)

    @property
    def rule(self) -> str:
        """What a step makes of the values that its slots leave."""
        return _RULES[_reduction(self.module, self.local)]


def is_metric(kept: nn.Module) -> bool:
    """A metric, or a collection of some."""
    return _is_a(kept, "Metric") or _is_a(kept, "MetricCollection")


def metric_states(name: str, metric: nn.Module) -> Iterator[MetricState]:
    """Of all that is in `metric`, kept under `name`. Raises MisuseError, with the name, where a state
    has no rule."""
    for path, part in metric.named_modules(prefix=name):
        if _is_a(part, "MetricCollection") and part._enable_compute_groups:
            raise MisuseError(f"run.keep() cannot keep `{path}`, whose metrics share states once they "
                              "have counted; make it with compute_groups=False.")
        if _is_a(part, "WrapperMetric") and type(part).__name__ != "ClasswiseWrapper":
            raise MisuseError(f"run.keep() cannot keep `{path}`, a {type(part).__name__}, which has "
                              "numbers that are no state of it; keep the metric inside, and compute "
                              "the rest from its value.")
        if not _is_a(part, "Metric"):
            continue
        for local in part._defaults:
            _check_state(path, part, local)
            yield MetricState(f"{path}.{local}", True, part, local)
        # What it has computed before Lockstep wrote other values into its states does not count.
        part.compute_with_cache, part._computed = False, None


def _check_state(path: str, metric: Any, local: str) -> None:
    if not isinstance(getattr(metric, local), Tensor):
        has_bins = "thresholds" in metric.__dict__
        raise MisuseError(f"run.keep() cannot keep `{path}`, a {type(metric).__name__}, whose `{local}` "
                          "is a list of all that it has seen; "
                          + ("give it thresholds=, or " if has_bins else "") + _INSTEAD + ".")
    if _reduction(metric, local) not in _RULES:
        raise MisuseError(f"run.keep() cannot keep `{path}`, a {type(metric).__name__}: what several "
                          f"processes count in its `{local}` is no sum, maximum or minimum; "
                          + _INSTEAD + ".")


def _reduction(metric: Any, local: str) -> str:
    return getattr(metric._reductions[local], "__name__", "none")


def _is_a(module: nn.Module, name: str) -> bool:
    return any(base.__name__ == name and base.__module__.startswith("torchmetrics.")
               for base in type(module).__mro__)
