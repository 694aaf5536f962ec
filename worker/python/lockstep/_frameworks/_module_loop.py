"""A LightningModule in the loop over run.batches(), which calls its hooks:

    body   on_train_epoch_start · batch transfer · on_train_batch_start · training_step
           on_before_backward · run.backward
    apply  on_after_backward · on_before_optimizer_step · clipping · optimizer_step
           schedulers · on_before_zero_grad · on_train_epoch_end

In apply, `.grad` holds the sums of the step. A change by a hook there is alike on all workers;
values that it needs after a resume belong into on_save_checkpoint().
"""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable

import torch

from .._data._seeds import EPOCH, epoch_key, generators_kept, seed_generators
from .._errors import Misuse
from ._common import mover
from ._configured import Configured
from ._epoch_metrics import EpochMetrics, number_of
from ._module_hooks import call, overrides, takes_batch_idx
from ._stand_in import StandIn

if TYPE_CHECKING:
    from .._run import Run


class _ModuleState:
    """The values that on_save_checkpoint() keeps besides tensors, as an object of run.keep()."""

    def __init__(self, module: Any):
        self._module = module

    def state_dict(self) -> dict[str, Any]:
        kept: dict[str, Any] = {}
        try:
            call(self._module, "on_save_checkpoint", kept)
        except KeyError as missing:
            raise Misuse(f"on_save_checkpoint() reads {missing} of the checkpoint, and Lockstep keeps "
                         "weights and optimizers itself: there it finds an empty dict, for values of "
                         "the module's own") from None
        return kept

    def load_state_dict(self, kept: dict[str, Any]) -> None:
        call(self._module, "on_load_checkpoint", kept)


class ModuleLoop:
    """One call of fit(). `trainer`: the module's self.trainer."""

    def __init__(self, run: Run, module: Any, trainer: StandIn):
        self._run = run
        self._module = module
        self._trainer = trainer
        self._owns_scheduling = overrides(module, "lr_scheduler_step")
        self._takes_batch_idx = takes_batch_idx(module.training_step)
        self._moved = mover(run)
        self._owner_of = {hook: trainer.datamodule if overrides(trainer.datamodule, hook) else module
                          for hook in ("on_before_batch_transfer", "transfer_batch_to_device",
                                       "on_after_batch_transfer")}
        self._metrics = EpochMetrics(module, ())
        self._begun_epoch = -1
        self._logged: dict[str, Any] | None = None  # None: outside of a slot

    def methods(self) -> dict[str, Callable[..., Any]]:
        """Replacements for methods of a LightningModule that need Lightning's own Trainer."""
        return {"log": self.log, "log_dict": self.log_dict, "print": print,
                "clip_gradients": self.clip, "optimizers": lambda *_, **__: self._optimizer,
                "lr_schedulers": self._lr_schedulers}

    def keep(self, metrics: EpochMetrics, configured: Configured) -> None:
        """Names the state."""
        self._metrics = metrics
        self._optimizer, self._schedules = configured.optimizer, configured.schedules
        self._trainer.optimizers = [self._optimizer]
        self._trainer.lr_scheduler_configs = list(self._schedules)
        names = [one.kept_as(self._owns_scheduling) for one in self._schedules]
        # The schedules that Lockstep does not step.
        self._own = [one for one, name in zip(self._schedules, names)
                     if self._owns_scheduling or name == "own_scheduler"]
        schedulers = {f"{name}{number or ''}": one.scheduler
                      for number, (one, name) in enumerate(zip(self._schedules, names))}
        has_own = overrides(self._module, "on_save_checkpoint")
        self._run.keep(model=self._module, optimizer=self._optimizer, update=self._update,
                       after_step=self._after_step, **schedulers, **metrics.kept(),
                       module_state=_ModuleState(self._module) if has_own else None)

    def compute(self, batch: Any) -> None:
        """The body of the loop: one slot."""
        module, step = self._module, self._run.step
        self._at(step)
        batch_idx = step % self._trainer.length.steps_per_epoch
        batch = self._transferred(batch)
        self._logged = {}
        if call(module, "on_train_batch_start", batch, batch_idx) == -1:
            raise Misuse("on_train_batch_start() returned -1, which ends an epoch early; every sample "
                         "counts once an epoch")
        with self._autocast():
            output = module.training_step(*((batch, batch_idx) if self._takes_batch_idx
                                            else (batch,)))
        loss = _loss_of(output)
        call(module, "on_before_backward", loss)
        logged, self._logged = self._logged, None
        self._run.backward(loss, metrics=logged)

    def validate(self, batch: Any, dataloader_idx: int | None) -> tuple[Any, dict[str, Any]]:
        """Returns what validation_step() returned and logged; it never gets the batch's number.
        `dataloader_idx`: None: there is one loader."""
        trainer, step = self._trainer, self._module.validation_step
        self._at(max(self._run.step - 1, 0))  # in the epoch that may be over
        trainer.global_step = self._run.step
        trainer.training, trainer.validating = False, True
        try:
            batch, self._logged = self._transferred(batch, dataloader_idx or 0), {}
            where = () if dataloader_idx is None else (dataloader_idx,)
            with self._autocast():
                output = step(batch, 0, *where) if takes_batch_idx(step) else step(batch)
            return output, self._logged
        finally:
            trainer.training, trainer.validating, self._logged = True, False, None

    def _autocast(self) -> torch.autocast:
        return torch.autocast(self._run.device.type, torch.bfloat16,
                              enabled=self._trainer.precision == "bf16-mixed")

    def _transferred(self, batch: Any, dataloader_idx: int = 0) -> Any:
        for hook, more in (("on_before_batch_transfer", (dataloader_idx,)),
                           ("transfer_batch_to_device", (self._run.device, dataloader_idx)),
                           ("on_after_batch_transfer", (dataloader_idx,))):
            if overrides(self._owner_of[hook], hook):
                batch = getattr(self._owner_of[hook], hook)(batch, *more)
            elif hook == "transfer_batch_to_device":
                batch = self._moved(batch)
        return batch

    def _at(self, step: int) -> None:
        """Tells the module how far the run is: `step` is next."""
        epoch = self._trainer.length.epoch_of(step)
        self._trainer.global_step, self._trainer.current_epoch = step, epoch
        if epoch != self._begun_epoch:
            self._begun_epoch = epoch
            with generators_kept():  # not every process is here before the same slot
                seed_generators(epoch_key(self._run.seed, epoch, EPOCH), 0)
                call(self._module, "on_train_epoch_start")

    def _update(self) -> None:
        """In apply, instead of clipping and optimizer.step()."""
        module, optimizer, trainer = self._module, self._optimizer, self._trainer
        step = self._run.step - 1
        self._at(step)
        call(module, "on_after_backward")
        call(module, "on_before_optimizer_step", optimizer)
        if overrides(module, "configure_gradient_clipping"):
            module.configure_gradient_clipping(
                optimizer, gradient_clip_val=trainer.gradient_clip_val,
                gradient_clip_algorithm=trainer.gradient_clip_algorithm)
        else:
            self.clip(optimizer)
        if overrides(module, "optimizer_step"):
            module.optimizer_step(trainer.current_epoch, step % self._trainer.length.steps_per_epoch,
                                  optimizer, lambda: None)
        else:
            optimizer.step()

    def _after_step(self) -> None:
        """In apply, after the optimizer and the schedulers that Lockstep steps."""
        step = self._run.step - 1
        step_in_epoch = step % self._trainer.length.steps_per_epoch
        ends_epoch = step_in_epoch + 1 == self._trainer.length.steps_per_epoch
        for one in self._own:
            if one.is_due(step_in_epoch, self._trainer.current_epoch, ends_epoch):
                if self._owns_scheduling:
                    self._module.lr_scheduler_step(one.scheduler, None)
                else:
                    one.scheduler.step()
        self._trainer.global_step = step + 1
        call(self._module, "on_before_zero_grad", self._optimizer)
        if ends_epoch:
            call(self._module, "on_train_epoch_end")
            if values := self._metrics.end_epoch():
                self._run.log(values)

    def clip(self, optimizer: Any, gradient_clip_val: Any = None,
             gradient_clip_algorithm: Any = None) -> None:
        """clip_gradients() of the module."""
        limit = self._trainer.gradient_clip_val if gradient_clip_val is None else gradient_clip_val
        how = gradient_clip_algorithm or self._trainer.gradient_clip_algorithm or "norm"
        if not limit:
            return
        parameters = [p for group in optimizer.param_groups for p in group["params"]]
        if getattr(how, "value", how) == "value":
            torch.nn.utils.clip_grad_value_(parameters, limit)
        else:
            torch.nn.utils.clip_grad_norm_(parameters, limit)

    def log(self, name: str, value: Any, prog_bar: Any = False, logger: Any = None,
            on_step: bool | None = None, on_epoch: bool | None = None, reduce_fx: Any = "mean",
            *_: Any, rank_zero_only: bool = False, **__: Any) -> None:
        """log() of the module. In a slot, a metric; elsewhere, a value of the step (Run.log())."""
        if reduce_fx not in ("mean", torch.mean):
            raise Misuse(f"self.log({name!r}, reduce_fx={reduce_fx!r}): a step's metric is the mean "
                         "over its samples")
        if rank_zero_only:
            raise Misuse(f"self.log({name!r}, rank_zero_only=True): every slot gives the same metrics, "
                         "whoever computes it; leave it out")
        if self._metrics.has(value) and not self._trainer.validating:
            values = {name: number_of(name, value)} if self._logged is None else \
                self._metrics.log(name, value, on_step, on_epoch)
        elif hasattr(value, "update") and hasattr(value, "compute"):
            raise Misuse(f"self.log({name!r}) was given a {type(value).__name__}, which gathers what "
                         "one process has seen; name it in lockstep.fit(metrics=[…]), and it counts over "
                         "an epoch; or, as in a validation, reset() it before each use and log the "
                         "batch's value, which calling it returns")
        else:
            values = {name: value}
        if self._logged is None:
            self._run.log(values)
        else:
            self._logged.update(values)

    def _lr_schedulers(self) -> Any:
        found = [one.scheduler for one in self._schedules]
        return found if len(found) > 1 else found[0] if found else None

    def log_dict(self, values: Any, *_: Any, **how: Any) -> None:
        for name, value in values.items():
            self.log(name, value, **how)


def _loss_of(output: Any) -> Any:
    loss = output.get("loss") if isinstance(output, dict) else output
    if loss is None:
        raise Misuse("training_step() returned no loss, which leaves out a batch; every sample counts "
                     "once an epoch, so return the loss, or {\"loss\": …}")
    return loss
