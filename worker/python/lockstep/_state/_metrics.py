"""The states of torchmetrics' metrics that a script gives to run.keep(): what they have counted so far.

A metric has its numbers in plain attributes, and a rule for each that joins the numbers of several
processes. Here they are buffers with this rule (_buffers/_rules.py): each slot goes on with the
numbers that the step before left, and a step adds what all its slots have counted.
"""

from __future__ import annotations

from typing import Any, Iterator

from torch import Tensor, nn

from ._errors import MisuseError
from ._named import NamedBuffer

_RULES = {"dim_zero_sum": "sum", "dim_zero_max": "max", "dim_zero_min": "min"}
_INSTEAD = "do not keep it, reset() it before each use, and give its value to run.backward(metrics=…)"
# A metric counts its updates, and reset() sets the count to 0. Only a warning of compute() reads
# it.
_MANY_UPDATES = 1 << 30


class MetricState(NamedBuffer):
    """A number, or several, that a metric counts in; always a part of the run's state."""

    @property
    def rule(self) -> str:
        return _RULES[_reduction(self.module, self.local)]

    @property
    def remedy(self) -> str:
        return "give it its size and dtype where it is made (num_classes=, set_dtype()); or " + _INSTEAD

    def was_reset(self) -> bool:
        return self.module._update_count < _MANY_UPDATES

    def get(self) -> Tensor:
        """The present tensor of the state: reset() makes another one."""
        return getattr(self.module, self.local)

    def put_back(self, values: Tensor) -> None:
        self.set(values)

    def set(self, values: Tensor) -> None:
        """Sets the state to a copy of `values`: the old one may be of inference mode, or shared."""
        setattr(self.module, self.local, values.detach().clone().to(self.get().device))
        self.module._update_count = _MANY_UPDATES


def is_network(kept: nn.Module) -> bool:
    """Whether it has parameters outside of metrics. A network's metrics come with it, needed or
    not. So they are no state, and the script has to reset them before each use."""
    if _is_a(kept, "Metric") or _is_a(kept, "MetricCollection"):
        return False
    return bool(kept._parameters) or any(map(is_network, kept.children()))


def metric_states(name: str, kept: nn.Module) -> Iterator[MetricState]:
    """The states of all metrics in `kept`, which is kept under `name`. Raises MisuseError, with the
    name, where a state has no rule."""
    for path, part in kept.named_modules(prefix=name):
        if _is_a(part, "MetricCollection") and part._enable_compute_groups:
            raise MisuseError(f"run.keep() cannot keep `{path}`, whose metrics share states once they "
                              "have counted; make it with compute_groups=False.")
        is_wrapper = _is_a(part, "WrapperMetric")
        if is_wrapper and type(part).__name__ != "ClasswiseWrapper" or _is_a(part, "MetricTracker"):
            raise MisuseError(f"run.keep() cannot keep `{path}`, a {type(part).__name__}, which has "
                              "numbers that are no state of it; keep the metric inside, and compute "
                              "the rest from its value.")
        if not _is_a(part, "Metric"):
            continue
        # Drops a value that it computed before Lockstep wrote other values into its states.
        part.compute_with_cache, part._computed = False, None
        for local in () if is_wrapper else part._defaults:  # a wrapper has the states of its metric
            _check_state(path, part, local)
            yield MetricState(f"{path}.{local}", True, part, local)


def numbers_of(module: nn.Module) -> dict[str, float]:
    """Plain numbers of a metric, including how often it was updated. They are no state, so no slot
    may go on with what the one before left there. Empty for other modules: they may count what they
    like."""
    if not _is_a(module, "Metric") or _is_a(module, "WrapperMetric") or not module._defaults:
        return {}
    return {key: value for key, value in vars(module).items() if type(value) in (int, float)}


def _check_state(path: str, metric: Any, local: str) -> None:
    if not isinstance(getattr(metric, local), Tensor):
        has_bins = "thresholds" in metric.__dict__
        raise MisuseError(f"run.keep() cannot keep `{path}`, a {type(metric).__name__}, whose `{local}` "
                          "is a list of all that it has seen; "
                          + ("give it thresholds=, or " if has_bins else "") + _INSTEAD + ".")
    if _reduction(metric, local) not in _RULES:
        raise MisuseError(f"run.keep() cannot keep `{path}`, a {type(metric).__name__}: what several "
                          f"processes have in its `{local}` is joined by no sum, maximum or minimum; "
                          + _INSTEAD + ".")


def _reduction(metric: Any, local: str) -> str:
    return getattr(metric._reductions[local], "__name__", "none")


def _is_a(module: nn.Module, name: str) -> bool:
    return any(base.__name__ == name and base.__module__.startswith("torchmetrics.")
               for base in type(module).__mro__)
