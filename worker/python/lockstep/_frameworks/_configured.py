"""The result of a module's configure_optimizers(): one optimizer, and when schedulers step."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler, ReduceLROnPlateau

from .._errors import Misuse

_FORMS = ("return an optimizer, ([optimizer], [scheduler]) or {\"optimizer\": …, \"lr_scheduler\": …} "
          "from configure_optimizers()")
_KEYS = {"scheduler", "interval", "frequency", "monitor", "strict", "name", "reduce_on_plateau"}


@dataclass(frozen=True)
class Schedule:
    """A scheduler that steps every `frequency` steps of an epoch, or epochs."""

    scheduler: Any
    interval: str = "epoch"
    frequency: int = 1

    def kept_as(self, module_steps_it: bool) -> str:
        """The beginning of its name in Run.keep()."""
        if not isinstance(self.scheduler, LRScheduler):
            return "scheduler"
        if module_steps_it or self.frequency != 1:
            return "own_scheduler"
        return "scheduler" if self.interval == "step" else "epoch_scheduler"

    def is_due(self, step_in_epoch: int, epoch: int, ends_epoch: bool) -> bool:
        """After a step, where both count from 0."""
        if self.interval == "step":
            return (step_in_epoch + 1) % self.frequency == 0
        return ends_epoch and (epoch + 1) % self.frequency == 0


@dataclass(frozen=True)
class Configured:
    """One optimizer and its schedules."""

    optimizer: Optimizer
    schedules: tuple[Schedule, ...]

    @staticmethod
    def of(returned: Any, steps_itself: bool) -> Configured:
        """`steps_itself`: the module overrides lr_scheduler_step(), so that any class will do."""
        optimizers, schedulers = _parts_of(returned)
        if len(optimizers) != 1:
            raise Misuse(f"configure_optimizers() returned {len(optimizers)} optimizers, and a step "
                         "has one; give it the groups of parameters of all")
        optimizer = getattr(optimizers[0], "_optimizer", optimizers[0])  # LightningOptimizer
        schedules = tuple(_schedule_of(one, optimizer, steps_itself) for one in schedulers)
        return Configured(optimizer, schedules)


def _is_optimizer(value: Any) -> bool:
    return isinstance(value, Optimizer) or isinstance(getattr(value, "_optimizer", None), Optimizer)


def _parts_of(returned: Any) -> tuple[list[Any], list[Any]]:
    """Optimizers and schedulers, in the forms that Lightning takes."""
    if _is_optimizer(returned):
        return [returned], []
    if isinstance(returned, dict):
        returned = [returned]
    if returned is None:
        raise Misuse(f"configure_optimizers() returned None, so nothing would be trained; {_FORMS}")
    if not isinstance(returned, (list, tuple)):
        raise Misuse(f"configure_optimizers() returned a {type(returned).__name__}; {_FORMS}")
    if returned and all(isinstance(one, dict) and _is_optimizer(one.get("optimizer"))
                        for one in returned):
        _refuse_keys(set().union(*returned) - {"optimizer", "lr_scheduler", "monitor"})
        return ([one["optimizer"] for one in returned],
                [one["lr_scheduler"] for one in returned if one.get("lr_scheduler") is not None])
    if all(_is_optimizer(one) for one in returned):
        return list(returned), []
    if len(returned) == 2 and isinstance(returned[0], (list, tuple)) and \
            all(_is_optimizer(one) for one in returned[0]):
        schedulers = returned[1]
        return list(returned[0]), (list(schedulers) if isinstance(schedulers, (list, tuple))
                                   else [schedulers])
    raise Misuse(f"configure_optimizers() returned something else; {_FORMS}")


def _refuse_keys(unknown: set[Any]) -> None:
    if unknown:
        raise Misuse(f"configure_optimizers() returned the key {min(unknown, key=str)!r}, which "
                     "Lightning does not know either; leave it out")


def _schedule_of(given: Any, optimizer: Optimizer, steps_itself: bool) -> Schedule:
    config = dict(given) if isinstance(given, dict) else {"scheduler": given}
    _refuse_keys(set(config) - _KEYS)
    scheduler = config.get("scheduler")
    name = type(scheduler).__name__
    if isinstance(scheduler, ReduceLROnPlateau) or config.get("reduce_on_plateau"):
        raise Misuse(f"configure_optimizers() returned {name}, which steps by a metric that only the "
                     "whole run knows; take a scheduler that steps by itself")
    if not isinstance(scheduler, LRScheduler) and not steps_itself:
        raise Misuse(f"configure_optimizers() returned {name} as a scheduler, which torch does not "
                     "know; override lr_scheduler_step() to step it")
    if getattr(scheduler, "optimizer", optimizer) is not optimizer:
        raise Misuse(f"configure_optimizers() returned {name} of another optimizer than it returned")
    interval, frequency = config.get("interval", "epoch"), config.get("frequency", 1)
    if interval not in ("step", "epoch"):
        raise Misuse(f"configure_optimizers() returned interval={interval!r}; it is \"step\" or "
                     "\"epoch\"")
    if not isinstance(frequency, int) or frequency < 1:
        raise Misuse(f"configure_optimizers() returned frequency={frequency!r}; it is a whole number "
                     "from 1 up")
    return Schedule(scheduler, interval, frequency)
