"""Metrics of torchmetrics that a module logs as objects: fit(metrics=) names them.

They are kept, so a step adds what all its slots have counted (BUFFERS.md). Every worker computes
the value of an epoch after its last step, and then resets them.
"""
from __future__ import annotations

from typing import Any, Iterable

from .._errors import Misuse


class EpochMetrics:
    """The metrics of one module."""

    def __init__(self, module: Any, names: Iterable[str] | str):
        names = [names] if isinstance(names, str) else [*names]
        self._metrics = {name: _metric_in(module, name) for name in names}
        self._parts = [part for metric in self._metrics.values() for part in metric.modules()]
        self._logged: dict[str, Any] = {}  # for the epoch, by name

    def kept(self) -> dict[str, Any]:
        """For Run.keep()."""
        return {"metric_" + name.replace(".", "_"): metric for name, metric in self._metrics.items()}

    def has(self, value: Any) -> bool:
        """Whether `value` is one of the metrics, or belongs to a collection among them."""
        return any(value is part for part in self._parts)

    def log(self, name: str, metric: Any, on_step: bool | None, on_epoch: bool | None
            ) -> dict[str, Any]:
        """self.log() in a slot: returns the slot's values. Defaults and names are Lightning's."""
        on_step, on_epoch = on_step is None or on_step, bool(on_epoch)
        if on_epoch:
            self._logged[f"{name}_epoch" if on_step else name] = metric
        if not on_step:
            return {}
        value = getattr(metric, "_forward_cache", None)
        if value is None:
            raise Misuse(f"self.log({name!r}) has no value of this batch: call the "
                         f"{type(metric).__name__} instead of update(), or log it with on_step=False, "
                         "on_epoch=True")
        return {f"{name}_step" if on_epoch else name: value}

    def end_epoch(self) -> dict[str, float]:
        """Returns the values of the epoch, by name, and resets the metrics."""
        values = {name: number_of(name, metric) for name, metric in self._logged.items()}
        for metric in self._metrics.values():
            metric.reset()
        return values


def number_of(name: str, metric: Any) -> float:
    """The metric's value so far."""
    value = metric.compute()
    try:
        return float(value)
    except (TypeError, ValueError, RuntimeError):
        raise Misuse(f"self.log({name!r}) was given a {type(metric).__name__} whose compute() gives no "
                     f"number, but a {type(value).__name__}; give it an average, or log its parts in "
                     "on_train_epoch_end()") from None


def _metric_in(module: Any, name: str) -> Any:
    found = module
    for part in name.split("."):
        found = getattr(found, part, None)
    if not all(callable(getattr(found, method, None)) for method in ("compute", "reset", "modules")):
        raise Misuse(f"lockstep.fit(metrics=[{name!r}]): {type(module).__name__} has no metric of this "
                     "name; name an attribute that is one of torchmetrics")
    return found
