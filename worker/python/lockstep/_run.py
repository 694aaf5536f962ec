"""The run of a script, as its loop sees it.

    start ─ keep ─ batches: data ─ trial slot twice ─ begin ─▶ order ⇄ reply ─▶ END
                              SLOT: yield, body, backward · APPLY: optimizer, scheduler, buffers ·
                              STATE, INSTALL · EDGE: code between two epochs (_epochs.py)

The loop of the C++ side (worker/script/core.h) decides; this one computes. A step is applied when the
loop asks for the next batch. Main thread only, except request_stop().
"""
from __future__ import annotations

import contextlib
import os
import pathlib
import sys
from typing import Any, Iterator, Mapping, Sequence

import torch

from . import _core, _seeds, _trial
from ._ahead import Ahead
from ._batches import check_arguments, open_batches
from ._buffers import rules_of
from ._core import Order, Reply
from ._debugger import Watch
from ._device import Device, Sender, sender_to
from ._ends import Ends
from ._epochs import EDGE, Epoch, Epochs
from ._errors import STOPPED, Left, LockstepError, Misuse, Replayed, Stopped
from ._eval import Evaluates, Evaluation
from ._finish import Finishes, Finishing
from ._job_data import JobData
from ._last import NAME as LAST_NAME, Last, LastStep
from ._log import Log, Logs
from ._phases import Phases
from ._settings import Settings
from ._slot import Slot
from ._stage import Stage
from ._state import Kept, MisuseError
from ._threads import watch_threads
from ._translate import as_ours
from ._tries import Tries


class Run(Tries, Logs, Evaluates, Finishes, Ends):
    """The run that lockstep.start() returns; one for a process."""

    def __init__(self, core: _core.Core, device: Device, is_worker: bool, script: str | None = None):
        self._core = core
        self._device = device
        self._script = script  # None: an interactive Python
        self._pid = os.getpid()
        self._is_worker = is_worker
        self._job = core.job
        self._log = Log(pathlib.Path(core.job["script_log"]).absolute() if is_worker else None)
        self._kept = Kept()
        self._last = LastStep()
        self._finishing = Finishing()
        self._clip_norm: float | None = None
        self._buffer_rules: dict[str, str] = {}
        self._is_kept = False
        self._evaluations: list[Evaluation] = []
        self._has_looped = False
        self._slot: Slot | None = None
        self._watch: Watch | None = None
        self._step = 0
        self._epoch = 0
        self._turn = 0
        self._phases = Phases(self._kept)  # until batches() names some

    # ---- what a script may ask ---------------------------------------------------------------

    @property
    def step(self) -> int:
        """Applied steps; 0 in the trial. A loop's body may know nothing else of its progress."""
        return self._step

    @property
    def epoch(self) -> int:
        """The epoch of the slot in work, from 0; in update= and after_step=, of the applied step."""
        return self._epoch

    @property
    def phase(self) -> str | None:
        """The phase of the slot in work; in update= and after_step=, of the applied step. None: the loop
        has none."""
        return self._phases.name(self._turn)

    @property
    def last(self) -> Last | None:
        """The loss, the metrics and the number of the last applied step, and the newest evaluation
        before it: the same bits in every worker. In update= and after_step=, of the step in work.
        None before the first."""
        return self._last.value

    @property
    def device(self) -> torch.device:
        """Where the run computes (cluster.device): the CPU, or the GPU of this process, which sees no
        other one. The model and its batches belong there: model.to(run.device), x.to(run.device)."""
        return self._device.place

    @property
    def seed(self) -> int:
        return int(self._job["seed"])

    @property
    def is_trial(self) -> bool:
        """True in a slot of the trial, or one computed for a comparison: neither is kept."""
        return self._stage is Stage.TRIAL or self._log.is_muted

    def keep(self, *, clip_norm: float | None = None, buffers: Mapping[str, str] | None = None,
             **objects: Any) -> None:
        """Names the state of the run: model=, optimizer=, and all else with state_dict().

        Schedulers step once an applied step; one kept as epoch_scheduler= at the end of an epoch,
        one as own_scheduler= when after_step= steps it. A GradScaler scales and unscales by itself.
        clip_norm: gradients are clipped to this norm before the optimizer steps. update=fn replaces
        clipping and optimizer.step(); after_step=fn is called after an applied step (averages of
        weights). buffers={"seen": "sum", "codebook.*": "mean"}: how a step joins the values that
        its slots leave in these buffers; sum, max, min or mean. Call it once, before batches().
        Raises Misuse for an object that cannot be kept.
        """
        try:
            self._kept.keep(**objects)
            self._device.check_kept(self._kept.trained(), self._kept.untrained())
        except MisuseError as why:
            raise Misuse(str(why)) from None
        if clip_norm is not None and not clip_norm > 0:
            raise Misuse(f"keep(clip_norm={clip_norm!r}): a norm is above 0")
        self._buffer_rules = rules_of({} if buffers is None else buffers, self._kept.buffers,
                                      int(self._job["slots"]))
        self._kept.others[LAST_NAME] = self._last
        self._clip_norm = clip_norm
        self._is_kept = True

    def epochs(self) -> Iterator[Epoch]:
        """The epochs of the run, from 0, or from where the run stands. The body has a loop over
        run.batches(), which ends with each epoch.

        Every worker runs the code after the inner loop, and from the second epoch on the code
        before it, after the epoch's evaluation, which run.last has. This code may change what is
        kept, save, and log. Like batches(), the loop ends by itself when the run is complete. Call
        it once.
        """
        if self._epochs is not None:
            raise Misuse("epochs() was called before: a run has one loop over its epochs, and "
                         "train.epochs or train.max_steps say how long it is")
        if self._has_looped:
            raise Misuse("epochs() was called after batches(); the loop over run.epochs() is around "
                         "the loop over run.batches()")
        self._epochs = Epochs()
        return self._epochs

    def batches(self, data: Any = None, *, workers: int | None = None, collate: Any = None,
                weights: Any = None, phases: Sequence[str] | None = None,
                device: Any = None) -> Iterator[Any]:
        """The batches of this process, a slot of a step each, until the run is complete.

        `data`: a map-style Dataset, or a DataLoader that shuffles plainly. None: the data that the
        job names (data.train.path), as Batch. workers: processes that read samples ahead, which
        change no bit; None: the DataLoader's num_workers, else none. weights: one number a sample:
        each position of an epoch draws its sample with replacement, in proportion to the weights;
        None: every sample once an epoch, or as a WeightedRandomSampler says. phases: names of kept
        optimizers, for several updates on each batch: gives (phase, batch), first all slots of a
        step in the first phase, whose optimizer then steps, and so on. Each phase is a step. A
        phase may use nothing that another computed, except what is kept. device: run.device: the
        tensors of a batch come there, sent while the body computes the one before. Raises
        SystemExit where the run stops or goes on without this worker: only a complete run goes on
        to code after the loop.
        """
        if not self._is_kept:
            raise Misuse("batches() came before run.keep(model=..., optimizer=...)")
        given = (data, workers, collate, weights, phases, device is None)
        if self._epochs is not None and self._has_looped:
            return self._epochs.again(given)
        if self._has_looped:
            raise Misuse("batches() was called before: a run has one loop over its data, and "
                         "train.epochs or train.max_steps say how long it is")
        frame = None if self._epochs is not None else sys._getframe(1)
        check_arguments(self._job, data, workers, collate, frame, weights)
        self._phases = Phases(self._kept, phases)
        self._has_looped = True
        loop = self._loop(data, workers, collate, weights, sender_to(self._device, device))
        return loop if self._epochs is None else self._epochs.first(loop, given)

    def backward(self, loss: torch.Tensor | Mapping[str, torch.Tensor], *, count: int | None = None,
                 metrics: Mapping[str, Any] | None = None) -> None:
        """Backward of the slot's mean loss, once in the loop's body.

        loss: or losses by names of kept optimizers, each of which trains only what its optimizer has.
        count: what the slot's mean is over, where that is not its samples (tokens that are no
        padding): the step's loss and gradients are the mean over all that is counted. metrics: means
        over the slot's samples, which the run shows with the loss.
        """
        self._check_process()
        if self._slot is None:
            raise Misuse("backward() outside of the loop over run.batches()")
        with as_ours():
            self._slot.backward(loss, count, metrics)

    def request_stop(self) -> None:
        """Ends the run, with a checkpoint, after the step at which all workers with slots have asked
        for it. So ask by values that all of them know, best in keep(after_step=...). Any thread."""
        self._core.request_stop()

    # ---- the loop ----------------------------------------------------------------------------

    def _loop(self, data: Any, workers: int | None, collate: Any, weights: Any,
              sender: Sender | None) -> Iterator[Any]:
        with contextlib.ExitStack() as stack:
            stack.enter_context(as_ours())
            self._settings = Settings(self._device.place)
            self._core.set_turns(self._phases.count)
            ahead, samples = open_batches(self._core, self._is_worker, stack, self._evaluations,
                                          data, workers, collate, weights, self._phases.count,
                                          sender)
            self._data_identity = ahead.identity() + self._phases.identity()
            self._steps_per_epoch = -(-samples // int(self._job["global_batch"])) * \
                self._phases.count
            stack.enter_context(self._noting_who_leaves())
            self._stage = Stage.TRIAL
            yield from self._try_out(ahead, *_trial.tasks_of(self._core, samples,
                                                                   self._phases.count))
            self._stage = Stage.TRAINING
            yield from self._train(ahead)

    def _slot_of(self, ahead: Ahead | JobData, task: _core.Task,
                 observed: _trial.Observed | None = None) -> Iterator[Any]:
        """Yields the batch of a slot; afterwards checks that the body did its part."""
        batch = ahead.take(task, is_trial=observed is not None)
        if observed is None:
            self._step, self._epoch = task.step, task.epoch
            if self._epochs is not None:
                self._epochs.computes(task.epoch)
        self._turn = self._parts.buffers.turn = task.turn
        is_closely = observed is not None or self._core.is_check(task.step + 1)
        if is_closely:
            self._kept.remember()
            self._parts.buffers.remember()
        _seeds.seed_all(task.seed)
        self._slot = Slot(self._parts, task, observed)
        yield self._phases.yielded(task.turn, batch)
        self._check_process()
        self._slot.check_done()
        self._settings.check()
        if is_closely:
            self._kept.check_same()
        self._kept.check_body()

    def _check_process(self) -> None:
        if os.getpid() != self._pid:
            raise Misuse("a process that the loop's body forked goes on with the loop; end it in "
                         "the body, by os._exit()")

    def _train(self, ahead: Ahead | JobData) -> Iterator[Any]:
        reply: Reply | None = None
        while True:
            order = self._next(reply)
            if order.kind == _core.END:
                return self._ended(order)
            if order.kind == _core.SLOT:
                task = _core.Task.from_buffer_copy(order.task)
                ahead.ask(order.generation)
                self._parts.buffers.restore()
                self._log.slot(order)
                self._finishing.opens()
                yield from self._slot_of(ahead, task)
                self._log.close()
                reply = self._slot.finish()
                reply.ends_run = self._finishing.closes()
                self._slot = None
            elif order.kind == _core.EDGE and self._epochs is not None:
                yield from self._cross_edge(order, self._epochs)
                reply = self._applier.end_edge()
                reply.ends_run = self._finishing.closes()
                self._log.crossed(order)
            else:
                reply = self._answer(order)

    def _cross_edge(self, order: Order, epochs: Epochs) -> Iterator[Any]:
        self._step, self._epoch = order.step, order.task.epoch
        self._log.crosses(order)
        self._applier.begin_edge(order)
        epochs.begins_edge(order.task.epoch, bool(order.is_done))
        self._finishing.opens()
        yield EDGE
        epochs.ends_edge()
        self._check_process()
        self._settings.check()

    def _answer(self, order: Order) -> Reply:
        if order.kind == _core.EVAL:
            self._step = order.step
            reply = self._evaluations[order.evaluation].answer(order, self._kept,
                                                               self._parts.buffers)
            self._kept.note()
            return reply
        if order.kind == _core.APPLY:
            self._step, self._epoch = order.step + 1, order.task.epoch
            self._turn = order.task.turn
            self._log.applies(order)
            self._finishing.opens()
        elif order.kind == _core.INSTALL:
            self._step = order.step
            self._log.installed()
        elif order.kind == _core.STATE:
            self._log.describes(order)
        reply = self._applier.answer(order)
        self._settings.check()
        if order.kind == _core.APPLY:
            asked = self._finishing.closes() or bool(order.ends_run)
            reply.ends_run = self._last.ends(asked, self._turn + 1 == self._phases.count)
            self._log.applied(order)
        return reply

    def _next(self, reply: Reply | None) -> Order:
        self._has_order = False
        order = self._core.next(reply)
        self._has_order = order.kind != _core.END
        self._signals.check()
        return order

    def _ended(self, order: Order) -> None:
        """Returns if every step is applied, so the loop ends; else raises for the script."""
        code, is_done, text = order.exit_code, bool(order.is_done), (order.text or b"").decode()
        self._stage = Stage.ENDED
        watch_threads()
        if self._watch is not None:
            self._watch.close()
        self._core.close(code)
        self._log.end()
        self._signals.stop()
        self._parts.gradients.remove()
        self._kept.remove_guard()
        if is_done and not self._is_worker:
            print(f"lockstep: done, {self._step} steps, weights_sha256 {text}", file=sys.stderr)
        if is_done:
            self._is_complete = True
            return
        if code in (0, 1) and "is_replay" in self._job:
            print(text, end="", flush=True)
            raise Replayed(code)
        if code == 0:
            raise Left()
        if code == STOPPED:
            if not self._is_worker:
                print(f"lockstep: stopped after step {self._step}; no checkpoint is written here, "
                      "`lockstep run` writes one and goes on from it", file=sys.stderr)
            raise Stopped()
        raise LockstepError(text or f"the run ended here with exit code {code}; the lines above, and "
                            "the logs in its directory, say why", code)
