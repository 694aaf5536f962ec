"""One slot in the hands of the loop's body."""
from __future__ import annotations

import ctypes
import operator
from typing import Any, Mapping, NamedTuple

import torch

from ._buffers import Buffers
from ._core import Core, Reply, Task
from ._device import Places, Staging
from ._errors import Misuse
from ._gradients import Gradients, dtype_number
from ._phases import Phases
from ._scaler import Scaler
from ._trial import Observed


class Seen(NamedTuple):
    """The arguments of backward() in a slot of the trial."""

    metrics: tuple[str, ...]  # sorted
    losses: tuple[str, ...]  # sorted names of optimizers; empty: one loss for all
    has_counts: bool


class SlotParts(NamedTuple):
    """The parts that all slots of a run share."""

    core: Core
    gradients: Gradients
    buffers: Buffers
    scaler: Scaler | None
    phases: Phases
    # None: the trial finds them out. By turn: the properties that its slots must have.
    seen: tuple[Seen, ...] | None
    metrics: tuple[str, ...]  # of all turns
    way: Staging | Places | None = None  # of gradients; None: they are in the host's memory


class Slot:
    """`observed`: set in the trial; else gradients go to the run."""

    def __init__(self, parts: SlotParts, task: Task, observed: Observed | None = None):
        self._parts = parts
        self._task = task
        self._observed = observed
        self._has_begun = False
        self._is_done = False
        self._is_closed = False  # the generation is over, and the slot will come again
        self._loss = 0.0
        self._count = task.end - task.begin
        self._metrics: list[float] = []

    def backward(self, loss: torch.Tensor | Mapping[str, torch.Tensor], count: int | None,
                 metrics: Mapping[str, Any] | None) -> None:
        """See Run.backward()."""
        if self._has_begun:
            raise Misuse("backward() twice in one slot: call it once. Losses that train the same "
                         "parameters are added. Where each of several optimizers has a loss of its "
                         "own, name them: run.backward({\"d\": loss_d, \"g\": loss_g}) trains with each "
                         "only what the optimizer kept by that name has; and where the second loss "
                         "is to be computed with what the first has trained (a GAN), take "
                         "run.batches(data, phases=(\"d\", \"g\"))")
        self._has_begun = True
        losses = self._losses_of(loss)
        wanted = {name: self._wanted(name) for name in losses}
        for name, each in losses.items():
            self._check_loss(each, wanted[name])
        self._check_seen(losses, count is not None, metrics or {})
        self._take_count(count)
        if self._observed is None:
            if not self._parts.core.backward_begins():
                self._is_closed = self._is_done = True
                return
            if self._parts.way is not None:
                self._parts.way.begin()
        if self._count:
            self._run_backward(losses, wanted)
        # Only now: earlier, this would wait for the GPU before backward had begun.
        self._loss = sum(float(each.detach()) for each in losses.values()) if self._count else 0.0
        self._take_metrics(metrics or {})
        if self._observed is not None:
            self._observed.loss = self._loss
        self._is_done = True

    def finish(self) -> Reply:
        """The reply with the results of the loop's body. REQUIRES: a slot of the run, not of the
        trial."""
        self.check_done()
        if not self._is_closed:
            self._parts.buffers.check_unchanged()
            self._send_statistics()
        self._kept = (ctypes.c_double * max(1, len(self._metrics)))(*self._metrics)
        return Reply(loss=self._loss, count=self._count, metrics=self._kept)

    def check_done(self) -> None:
        if self._has_begun and not self._is_done:
            raise Misuse("run.backward() failed in this slot, and the loop's body went on with half of "
                         "its gradients; let the exception end the script")
        if not self._is_done:
            raise Misuse("the loop's body ended without run.backward(loss), so this slot's samples "
                         "would count for nothing; call it once for each batch")

    def _wanted(self, name: str | None) -> frozenset[int] | None:
        """The parameters that this loss is for; None: all. Raises Misuse for a name of no optimizer."""
        phases, turn = self._parts.phases, self._task.turn
        return phases.owned(turn) if name is None else phases.owned_by(name, turn)

    def _check_loss(self, loss: Any, wanted: frozenset[int] | None) -> None:
        if not isinstance(loss, torch.Tensor) or loss.numel() != 1:
            what = f"a tensor of {tuple(loss.shape)}" if isinstance(loss, torch.Tensor) else \
                type(loss).__name__
            raise Misuse(f"backward() takes the mean loss of the batch, one number, and was given "
                         f"{what}; call .mean() on it")
        if not loss.requires_grad and not self._parts.gradients.are_frozen(wanted):
            raise Misuse("the loss given to backward() does not depend on any parameter that is "
                         "trained (was it computed under no_grad(), or detached?)")

    def _losses_of(self, loss: Any) -> dict[str | None, torch.Tensor]:
        """Losses by the optimizer that each is for; None: one loss for all that step."""
        if not isinstance(loss, Mapping):
            return {None: loss}
        if not loss:
            raise Misuse("backward() was given no loss")
        return dict(loss)

    def _check_seen(self, losses: Mapping[str | None, Any], has_counts: bool,
                    metrics: Mapping[str, Any]) -> None:
        now = Seen(tuple(sorted(metrics)), tuple(sorted(name for name in losses if name is not None)),
                   has_counts)
        if self._observed is not None:
            self._observed.seen = now
            return
        assert self._parts.seen is not None
        before = self._parts.seen[self._task.turn]
        if now.has_counts != before.has_counts:
            raise Misuse("backward(count=...) must be given in every slot or in none")
        if now.metrics != before.metrics:
            raise Misuse(f"backward() was given the metrics {list(now.metrics)}, and in the trial "
                         f"{list(before.metrics)}; give it the same in every slot")
        if now.losses != before.losses:
            raise Misuse(f"backward() was given losses for {list(now.losses)}, and in the trial for "
                         f"{list(before.losses)}; give it the same in every slot")

    def _take_count(self, count: int | None) -> None:
        if count is None:
            return
        try:
            self._count = operator.index(count)
        except TypeError:
            self._count = -1
        if not 0 <= self._count < 1 << 32:
            raise Misuse(f"backward(count={count!r}): a count is a whole number from 0 up")

    def _take_metrics(self, metrics: Mapping[str, Any]) -> None:
        for name in self._parts.metrics if self._observed is None else sorted(metrics):
            value = metrics.get(name, 0.0)  # 0: it is one of another turn's
            try:
                self._metrics.append(float(value.detach() if isinstance(value, torch.Tensor)
                                           else value))
            except (TypeError, ValueError, RuntimeError):
                raise Misuse(f"the metric {name} is no number but {value!r}; give its mean over the "
                             "batch") from None

    def _run_backward(self, losses: Mapping[str | None, torch.Tensor],
                      wanted: Mapping[str | None, frozenset[int] | None]) -> None:
        parts = self._parts
        parts.gradients.sink = self._observed.take if self._observed is not None else \
            parts.way.send if parts.way is not None else self._send
        parts.gradients.is_open = True
        left = len(losses)
        try:
            for name, loss in losses.items():
                left -= 1
                if not loss.requires_grad:
                    continue  # all its parameters are frozen
                parts.gradients.wanted = wanted[name]
                # Autograd rounds the share to the dtype of the loss: 1/3 in bf16 is off by a
                # five-hundredth, as it is where a loop of PyTorch's divides its loss.
                scaled = loss.float()
                if parts.scaler is not None:
                    scaled = parts.scaler.scale(scaled)
                share = torch.full_like(scaled, self._count / self._task.step_samples,
                                        requires_grad=False)
                scaled.backward(gradient=share, retain_graph=True if left else None)
            if parts.way is not None:
                parts.way.finish()
        finally:
            parts.gradients.is_open = False

    def _send(self, index: int, grad: torch.Tensor) -> None:
        self._parts.core.take(index, grad.data_ptr(), dtype_number(grad.dtype), grad.numel())

    def _send_statistics(self) -> None:
        parts = self._parts
        for index, floats in enumerate(parts.buffers.sent(self._task.slot)):
            if isinstance(parts.way, Places):
                parts.way.send_statistic(index, floats)
            else:
                parts.core.take_statistic(index, floats.data_ptr(), floats.numel())
