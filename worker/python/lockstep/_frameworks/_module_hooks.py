"""The hooks of a LightningModule: which it overrides, and which break a run's promises."""
from __future__ import annotations

import inspect
from typing import Any, Callable

from .._errors import Misuse

_IN_APPLY = ("override on_before_optimizer_step(), or on_before_zero_grad(), which Lockstep calls after "
             "every applied step")
_REFUSED = {
    "on_train_batch_end": "a worker may have no slot of a step, or several, and the step is applied "
                          f"later; {_IN_APPLY}",
    "backward": "Lockstep calls backward, and sums gradients meanwhile; change the loss, or "
                "on_after_backward()",
    "optimizer_zero_grad": "gradients are None outside of a step; delete it",
    "configure_callbacks": "callbacks of Lightning need its Trainer; override the module's hooks",
    "configure_sharded_model": "Lockstep keeps parameters whole; override configure_model()",
}


def overrides(owner: Any, name: str) -> bool:
    """Whether the object has this method, and not from Lightning's own base classes."""
    method = getattr(owner, name, None)
    home = (getattr(method, "__module__", None) or "").partition(".")[0]
    return callable(method) and home not in ("lightning", "pytorch_lightning")


def call(owner: Any, name: str, *args: Any) -> Any:
    """Calls a hook that the owner may lack."""
    method = getattr(owner, name, None)
    return method(*args) if callable(method) else None


def check_module(module: Any) -> None:
    """Raises Misuse unless `module` is a LightningModule that a run can train."""
    name = type(module).__name__
    for wanted in ("training_step", "configure_optimizers"):
        if not overrides(module, wanted):
            raise Misuse(f"lockstep.fit() takes a LightningModule, and {name} has no {wanted}(); for "
                         "another model write the loop with run.batches() (SCRIPTS.md)")
    if name == "OptimizedModule":
        raise Misuse("lockstep.fit() was given a compiled module; compile the network inside it "
                     "instead, in configure_model()")
    if getattr(module, "automatic_optimization", True) is not True:
        raise Misuse(f"{name} has automatic_optimization = False, and only Lockstep knows when a "
                     "step is summed; leave it True, or write the loop with run.batches()")
    for hook, why in _REFUSED.items():
        if overrides(module, hook):
            raise Misuse(f"{name} overrides {hook}(): {why}")
    parameters = inspect.signature(module.training_step).parameters
    for refused in ("dataloader_iter", "optimizer_idx", "hiddens"):
        if refused in parameters:
            raise Misuse(f"training_step() of {name} takes {refused}; it takes (batch, batch_idx)")


def takes_batch_idx(training_step: Callable[..., Any]) -> bool:
    """Lightning passes batch_idx only if training_step() has it, or a second argument."""
    parameters = list(inspect.signature(training_step).parameters.values())
    return len(parameters) > 1 or any(p.kind is p.VAR_POSITIONAL for p in parameters)


def takes_dataloader_idx(validation_step: Callable[..., Any]) -> bool:
    parameters = inspect.signature(validation_step).parameters.values()
    return any(p.name == "dataloader_idx" or p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
               for p in parameters) or len(parameters) > 2
