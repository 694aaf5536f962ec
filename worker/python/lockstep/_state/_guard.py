"""Raises at once, with one sentence, if a loop body does what only Lockstep may do.

A worker may own no slot of a step, and computes a slot twice after a failure. So optimizers,
schedulers and scalers move in apply alone, on all workers alike; a step in the loop body would make
their weights differ.
"""

from __future__ import annotations

import copyreg
from contextlib import contextmanager
from typing import Any, Callable, Iterator

from torch.optim import Optimizer

from ._clipping import Clipping
from ._errors import MisuseError
from ._optimizers import changed, settings


class Guard:
    """Hooks on the kept optimizers, schedulers and scalers. `parameters`: ids of those that get
    gradients. Main thread only."""

    def __init__(self, optimizers: dict[str, Optimizer], schedulers: dict[str, Any],
                 scalers: dict[str, Any], parameters: set[int],
                 own_schedulers: frozenset[str] = frozenset()) -> None:
        self.is_applying = False
        self.is_scaling = False
        self.is_pacing = False
        self._optimizers = optimizers
        self._clipping = Clipping(parameters, lambda: self.is_applying)
        self._handles = [
            optimizer.register_step_pre_hook(self._hook(name))
            for name, optimizer in optimizers.items()
        ]
        self._classes: list[tuple[Any, type]] = []
        for name, scheduler in schedulers.items():
            self._guard(scheduler, {"step": _step_of_scheduler(
                type(scheduler), name, self, is_own=name in own_schedulers)})
        for name, scaler in scalers.items():
            self._guard(scaler, {method: _method_of_scaler(type(scaler), name, method, self)
                                 for method in ("scale", "unscale_", "step", "update")})
        self.note()

    @contextmanager
    def applying(self) -> Iterator[None]:
        """Lets optimizers and schedulers step inside."""
        self.is_applying = True
        try:
            yield
        finally:
            self.is_applying = False
            self.note()

    @contextmanager
    def pacing(self) -> Iterator[None]:
        """Lets the schedulers that Lockstep steps step inside."""
        self.is_pacing = True
        try:
            yield
        finally:
            self.is_pacing = False

    @contextmanager
    def scaling(self) -> Iterator[None]:
        """Lets scalers scale, unscale and update inside."""
        self.is_scaling = True
        try:
            yield
        finally:
            self.is_scaling = False

    def note(self) -> None:
        """Notes the settings of the optimizers as they are now."""
        self._settings = {name: settings(o) for name, o in self._optimizers.items()}

    def check(self) -> None:
        """Raises MisuseError if the loop body changed a setting of an optimizer."""
        for name, optimizer in self._optimizers.items():
            what = changed(self._settings[name], settings(optimizer))
            if what:
                raise MisuseError(
                    f"The loop body changed `{name}.{what}`, which workers without a part of this "
                    "step do not see: keep a scheduler (LambdaLR takes any function of the step), "
                    "or set it in run.keep(after_step=…).")

    def remove(self) -> None:
        """Takes the hooks away."""
        for handle in self._handles:
            handle.remove()
        for guarded, original in self._classes:
            guarded.__class__ = original
        self._handles, self._classes = [], []
        self._clipping.remove()

    def _guard(self, kept: Any, methods: dict[str, Callable[..., Any]]) -> None:
        original = type(kept)
        try:
            kept.__class__ = _guarded(original, methods)
        except TypeError:  # a class with __slots__: it stays without a guard
            return
        self._classes.append((kept, original))

    def _hook(self, name: str):
        def refuse(_optimizer: Any, _args: Any, _kwargs: Any) -> None:
            if not self.is_applying:
                raise MisuseError(
                    f"The loop body calls `{name}.step()`: delete the call, Lockstep steps the "
                    "optimizer when all workers' gradients of the step are summed.")
        return refuse


def _step_of_scheduler(original: type, name: str, guard: Guard, is_own: bool) -> Callable[..., Any]:
    def step(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not guard.is_applying:
            raise MisuseError(
                f"The loop body calls `{name}.step()`: delete the call, Lockstep steps the "
                "scheduler when a step is applied, after the optimizer.")
        if not is_own and not guard.is_pacing:
            rest = "" if name == "scheduler" else f"_{name}"
            raise MisuseError(
                f"The script calls `{name}.step()`, and Lockstep steps that scheduler, too, whenever a "
                f"step is applied: keep it as run.keep(own_scheduler{rest}=…) to step it yourself, or as "
                f"epoch_scheduler{rest}= to have it stepped as each epoch ends; or delete the call.")
        return original.step(self, *args, **kwargs)
    return step


def _method_of_scaler(original: type, name: str, method: str, guard: Guard) -> Callable[..., Any]:
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if guard.is_scaling:
            return getattr(original, method)(self, *args, **kwargs)
        if not guard.is_applying:
            raise MisuseError(
                f"The loop body calls `{name}.{method}()`: delete the call, Lockstep scales the loss "
                "that run.backward(loss) is given, unscales the summed gradients, steps and updates.")
        if method != "step":
            raise MisuseError(
                f"`{name}.{method}()` is called in run.keep(update=…) or after_step=: delete the "
                "call, the gradients that update= finds are unscaled and finite, and Lockstep "
                "updates the scaler behind it.")
        optimizer, *args = args  # no overflow: a step with one comes to no update=
        return optimizer.step(*args, **kwargs)
    return call


def _guarded(original: type, methods: dict[str, Callable[..., Any]]) -> type:
    """A subclass that looks and pickles like `original`, with other `methods`.

    A wrapper in the instance would stand in its __dict__, which is a scheduler's state_dict().
    """
    def reduce(self: Any, protocol: Any) -> Any:
        made_by, args, *rest = original.__reduce_ex__(self, protocol)
        if made_by is copyreg.__newobj__ and args == (type(self),):
            return (copyreg._reconstructor, (original, object, None), *rest)
        return (made_by, tuple(original if a is type(self) else a for a in args), *rest)

    return type(original.__name__, (original,), {
        **methods, "__reduce_ex__": reduce, "__module__": original.__module__,
        "__qualname__": original.__qualname__, "__doc__": original.__doc__,
    })
