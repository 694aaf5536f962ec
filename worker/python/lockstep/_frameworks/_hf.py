"""lockstep.Trainer: Hugging Face's Trainer with a loop over run.batches().

It keeps transformers' own parts: training_step(), compute_loss(), the optimizer, the schedule, the
collator and train(), except the inner loop. accelerator.backward() is run.backward().
"""
from __future__ import annotations

import math
from typing import Any

import torch
import transformers
from torch.optim.lr_scheduler import LRScheduler
from transformers.integrations import get_reporting_integration_callbacks
from transformers.trainer_callback import PrinterCallback, ProgressCallback
from transformers.trainer_utils import TrainOutput

from .._errors import Misuse
from .._translate import as_ours
from ._common import Length, mover, one_at_a_time, run_for
from ._hf_arguments import check_arguments, check_length, compute_on

_HOST = torch.device("cpu")  # where items are counted, so that no slot waits for the one before
_DATA = ("Lockstep asks for samples by number, in the job's order; pass train_dataset= and "
         "data_collator=")


class Trainer(transformers.Trainer):
    """Trains as transformers.Trainer does, with the job's batch, data order and recovery.

    Make it after lockstep.start(), and the model before it or by model_init=. Raises Misuse for
    arguments that a run cannot honour (FRAMEWORKS.md).
    """

    def __init__(self, model: Any = None, args: Any = None, *more: Any, **named: Any):
        self._run = run_for("lockstep.Trainer()")
        if args is None:
            args = transformers.TrainingArguments("tmp_trainer", seed=self._run.seed)
        check_arguments(args, self._run)
        compute_on(args, self._run.device)
        self._moved = mover(self._run)
        for name in ("get_train_dataloader", "_get_train_sampler"):
            if getattr(type(self), name) is not getattr(transformers.Trainer, name):
                raise Misuse(f"{type(self).__name__} overrides {name}(): {_DATA}")
        super().__init__(model, args, *more, **named)
        self._hold_back(get_reporting_integration_callbacks(args.report_to))
        self._count: int | None = None  # of the slot in work
        for shown in (ProgressCallback, PrinterCallback):  # Lockstep shows the run
            self.remove_callback(shown)

    def train(self, resume_from_checkpoint: Any = None, trial: Any = None,
              ignore_keys_for_eval: Any = None) -> TrainOutput:
        """Trains until the run is complete. Raises SystemExit where the run stops, or goes on without
        this worker."""
        if resume_from_checkpoint:
            raise Misuse(f"train(resume_from_checkpoint={resume_from_checkpoint!r}): `lockstep run "
                         "--resume` goes on with a run, from Lockstep's own checkpoint")
        if trial is not None:
            raise Misuse("hyperparameter_search() trains several models in one process, and a run "
                         "trains one; start a run for each")
        return super().train(ignore_keys_for_eval=ignore_keys_for_eval)

    def save_model(self, *args: Any, **named: Any) -> None:
        """Every worker writes the same files, one after the other."""
        with one_at_a_time():
            super().save_model(*args, **named)

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        """Values of the step, which only the writer shows; after the loop, as in transformers."""
        if not self.is_in_train:
            return super().log(logs, start_time)
        self._run.log({name: value for name, value in logs.items()
                       if isinstance(value, (int, float)) and math.isfinite(value)})
        self.state.log_history.append({**logs, "epoch": self.state.epoch,
                                       "step": self.state.global_step})
        if self._run.is_writer:
            self.control = self.callback_handler.on_log(self.args, self.state, self.control,
                                                        {**logs, "epoch": self.state.epoch})

    # ---- the loop ------------------------------------------------------------------------------

    def _inner_training_loop(self, *_: Any, **__: Any) -> TrainOutput:
        run = self._run
        data, collate = self._data()
        with as_ours():
            self._length = Length.of(run, data, collate)
        check_length(self.args, self._length)
        model = self._prepare()
        self._start_callbacks()
        for name, (held_out, held_out_collate) in self._eval_data().items():
            run.evaluate(self._score, held_out, name=name, collate=held_out_collate,
                         workers=self.args.dataloader_num_workers)
        for inputs in run.batches(data, workers=self.args.dataloader_num_workers, collate=collate):
            self._compute(model, inputs)
        del self.accelerator.backward
        self.control = self.callback_handler.on_train_end(self.args, self.state, self.control)
        if self.neftune_noise_alpha is not None:
            self.neftune_hook_handle.remove()
        self.is_in_train = False
        return TrainOutput(run.step, float("nan"), {"epoch": run.step / self._length.steps_per_epoch})

    def _data(self) -> tuple[Any, Any]:
        """The data set and collate, without the columns that the model does not take."""
        if self.train_dataset is None:
            raise Misuse("lockstep.Trainer() was given no train_dataset=")
        return self._columns_of(self.train_dataset)

    def _eval_data(self) -> dict[str | None, tuple[Any, Any]]:
        """By the names of the evaluations; a single one has none."""
        if not self._evaluates():
            return {}
        if self.compute_metrics is not None:
            raise Misuse("compute_metrics= takes all predictions at once, and a worker has a part of "
                         "them; leave it out while eval_strategy is \"epoch\"")
        if not isinstance(self.eval_dataset, dict):
            return {None: self._columns_of(self.eval_dataset)}
        if not self.eval_dataset:
            raise Misuse("eval_strategy=\"epoch\", and eval_dataset= is an empty dict; put the data "
                         "sets in it, or set eval_strategy=\"no\"")
        return {name: self._columns_of(data) for name, data in self.eval_dataset.items()}

    def _columns_of(self, data: Any) -> tuple[Any, Any]:
        collate = self.data_collator
        if hasattr(data, "column_names") and hasattr(data, "remove_columns"):  # of `datasets`
            return self._remove_unused_columns(data, "training"), collate
        return data, self._get_collator_with_removed_columns(collate, "training")

    def _prepare(self) -> Any:
        """Optimizer and schedule as the Trainer makes them; the model as it computes a slot."""
        self.create_optimizer()
        # Only autocast: Accelerate does not wrap a model in evaluation.
        model = self.accelerator.prepare_model(self.model, device_placement=False,
                                               evaluation_mode=True)
        self.create_scheduler(num_training_steps=self._length.steps)
        if not isinstance(self.lr_scheduler, LRScheduler) or \
                isinstance(self.lr_scheduler, torch.optim.lr_scheduler.ReduceLROnPlateau):
            raise Misuse(f"the schedule is a {type(self.lr_scheduler).__name__}, which steps by a "
                         "metric that only the whole run knows; take one that steps by itself")
        self._run.keep(model=self.model, optimizer=self.optimizer, scheduler=self.lr_scheduler,
                       update=self._update, after_step=self._after_step)
        self.accelerator.backward = self._backward
        self.model_wrapped = model
        return model

    def _compute(self, model: Any, inputs: Any) -> None:
        """The body of the loop: one slot, as one batch without gradient accumulation."""
        self._note(self._run.step)
        _, items = self.get_batch_samples(iter([inputs]), 1, _HOST)
        # The loss is the mean over these items, unless compute_loss() says that it is over samples.
        is_of_samples = getattr(self, "loss_is_scaled_for_ga", None) is False
        self._count = None if items is None or is_of_samples else int(items)
        self.current_gradient_accumulation_steps = 1
        self.training_step(model, self._moved(inputs), items)

    def _backward(self, loss: torch.Tensor, **_: Any) -> None:
        self._run.backward(loss, count=self._count)

    # ---- evaluations ---------------------------------------------------------------------------

    def _evaluates(self) -> bool:
        return self.args.eval_strategy != "no"

    def _score(self, inputs: Any) -> dict[str, Any]:
        """Scores one batch. Its loss is a mean over the same items as in training."""
        self._note(self._run.step)  # a worker that has just come has seen no slot yet
        items = self.get_batch_samples(iter([inputs]), 1, _HOST)[1]
        loss, _, _ = self.prediction_step(self.model_wrapped, self._moved(inputs),
                                          prediction_loss_only=True)
        if loss is None:
            raise Misuse("eval_strategy=\"epoch\", and the model gave no loss for a batch of eval_dataset; "
                         "give it labels")
        return {"loss": loss} if items is None else {"loss": loss, "count": int(items)}

    # ---- in apply, on every worker alike -------------------------------------------------------

    def _update(self) -> None:
        args, model, optimizer = self.args, self.model, self.optimizer
        assert model is not None and optimizer is not None  # _prepare()
        self._note(self._run.step - 1)
        self._logs: dict[str, float | torch.Tensor] = {}
        if args.max_grad_norm is not None and args.max_grad_norm > 0:
            self._logs["grad_norm"] = torch.nn.utils.clip_grad_norm_(model.parameters(),
                                                                     args.max_grad_norm)
        self._logs["learning_rate"] = self._get_learning_rate()
        handler = self.callback_handler
        self.control = handler.on_pre_optimizer_step(args, self.state, self.control)
        optimizer.step()
        self.control = handler.on_optimizer_step(args, self.state, self.control)

    def _after_step(self) -> None:
        args, handler, step = self.args, self.callback_handler, self._run.step
        self._note(step)
        self.control = handler.on_step_end(args, self.state, self.control)
        self._heed()
        is_last = step == self._length.steps
        if step % self._length.steps_per_epoch == 0:
            self.control = handler.on_epoch_end(args, self.state, self.control)
            self._heed()
            if not is_last:
                self.control = handler.on_epoch_begin(args, self.state, self.control)
        if self.control.should_training_stop and not is_last:
            self._run.finish()
        if not is_last:
            self.control = handler.on_step_begin(args, self.state, self.control)

    # ---- callbacks -----------------------------------------------------------------------------

    def _start_callbacks(self) -> None:
        length = self._length
        self.state.compute_steps(self.args, length.steps)
        self.state.max_steps = length.steps
        self.state.num_train_epochs = -(-length.steps // length.steps_per_epoch)
        handler = self.callback_handler
        handler.model, handler.optimizer, handler.lr_scheduler = \
            self.model, self.optimizer, self.lr_scheduler
        for event in (handler.on_train_begin, handler.on_epoch_begin, handler.on_step_begin):
            self.control = event(self.args, self.state, self.control)

    def _note(self, step: int) -> None:
        self.state.global_step = step
        self.state.epoch = step / self._length.steps_per_epoch
        self.state.is_world_process_zero = self.state.is_local_process_zero = self._run.is_writer

    def _hold_back(self, reporting: list[type]) -> None:
        """Keeps callbacks of report_to= to the writer: other workers would open reports, too."""
        handler = self.callback_handler
        held = [one for one in handler.callbacks if type(one) in reporting]
        handler.callbacks = [one for one in handler.callbacks if type(one) not in reporting]

        def begin() -> None:
            others, handler.callbacks = handler.callbacks, held
            self._note(self._run.step - 1)
            self.control = handler.on_train_begin(self.args, self.state, self.control)
            handler.callbacks = others + held

        if held:
            self._run.on_writer(begin)

    def _heed(self) -> None:
        """Obeys requests of callbacks, except for checkpoints, which are Lockstep's."""
        control = self.control
        if control.should_evaluate and not self._evaluates():
            raise Misuse("a callback asked for an evaluation: a run evaluates with "
                         "eval_strategy=\"epoch\", and as eval.every_steps of the job says")
        if control.should_log:
            self.log({name: float(value) for name, value in self._logs.items()})
        control.should_log = control.should_save = control.should_evaluate = False
