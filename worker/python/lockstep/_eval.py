"""Evaluations by a function of the script: run.evaluate().

The core cuts the evaluation data into batches (train.eval_batch), gives each worker a contiguous run
of them, and adds the scores in the order of batches, so the result has the same bits in every world.
This module computes the score of one batch, from the weights, the batch, and seeds of the batch.

Main thread only.
"""
from __future__ import annotations

import contextlib
import ctypes
import operator
import re
import time
from typing import Any, Callable, Iterator, Mapping, NamedTuple, Sequence

import torch

from . import _seeds
from ._buffers import Buffers
from ._core import Core, Order, Reply, Task as CoreTask
from ._data import DataError, Feed, Source, Task, facts, unpack
from ._errors import CONFIG, LockstepError, Misuse
from ._hidden import Hidden
from ._job_data import JobData
from ._state import Kept

_LONG_TRIAL_S = 10.0
_SEED = 0x45D9F3B3335B369  # evaluation data draw other numbers than training data
_AGAINST_HIDDEN = ("for a metric, reset it before each use and return the batch's value, of which Lockstep "
                   "takes the mean")
_RESERVED = ("loss", "count", "correct")
_CAUSES = ("the function, or collate, may draw from a random generator of its own, or keep something "
           "from batch to batch; draw from the default generators, which Lockstep seeds for each batch")


class Score(NamedTuple):
    loss: float
    count: int
    correct: int | None
    metrics: tuple[tuple[str, float], ...]  # by name


def _number(who: str, name: str, value: Any) -> float:
    try:
        return float(value.detach() if isinstance(value, torch.Tensor) else value)
    except (TypeError, ValueError, RuntimeError):
        raise Misuse(f"{who} gave {type(value).__name__} for {name}, which is no number; give its mean "
                     "over the batch") from None


def _whole(who: str, name: str, value: Any, most: int) -> int:
    try:
        whole = operator.index(value.item() if hasattr(value, "item") else value)
    except (TypeError, ValueError, RuntimeError):
        whole = -1
    if not 0 <= whole <= most:
        raise Misuse(f"{who} gave {str(value)[:80]} for {name}: a whole number from 0 to {most}")
    return whole


def score_of(result: Any, samples: int, who: str = "the evaluation") -> Score:
    """The score that the script's function returned for a batch of `samples`."""
    found = dict(result) if isinstance(result, Mapping) else {"loss": result}
    if "loss" not in found:
        raise Misuse(f"{who} returned no loss; return the batch's mean loss, or a dict with "
                     '"loss", and beside it "correct", "count" and metrics')
    count = _whole(who, "count", found["count"], (1 << 32) - 1) if "count" in found else samples
    correct = _whole(who, "correct", found["correct"], count) if "correct" in found else None
    metrics = sorted((name, value) for name, value in found.items() if name not in _RESERVED)
    return Score(_number(who, "loss", found["loss"]) if count else 0.0, count, correct,
                 tuple((name, _number(who, name, value)) for name, value in metrics))


def _source_of(data: Any, collate: Any) -> Source:
    """Takes dataset, collate and workers from a DataLoader: the order is the dataset's."""
    workers = None
    if isinstance(data, torch.utils.data.DataLoader):
        plain = (torch.utils.data.SequentialSampler, torch.utils.data.RandomSampler)
        if data.batch_size is None or type(data.sampler) not in plain or data.drop_last:
            raise Misuse("evaluate() takes every sample once: give it a DataLoader without sampler=, "
                         "batch_sampler= and drop_last=, or the dataset itself and collate=")
        workers, collate, data = data.num_workers, collate or data.collate_fn, data.dataset
    try:
        source = unpack(data, collate)
    except DataError as why:
        raise DataError(why.code, why.text.replace("run.batches()", "run.evaluate()")) from None
    return Source(source.dataset, source.collate, source.samples, source.name, source.whole_slots,
                  workers)


def check_eval_data(job: Mapping[str, str], data: Any, takes_jobs: bool = False) -> None:
    """Raises Misuse unless either the script or its job names the data of an evaluation.
    `takes_jobs`: an earlier evaluation takes the job's."""
    if data is None and takes_jobs:
        raise Misuse("evaluate() was called before without data, which are the job's evaluation data; "
                     "give this one a data set")
    if data is None and not job["eval_data"]:
        raise Misuse("evaluate() was given no data, and the job names none to evaluate on; give it a data "
                     "set, or name data.train.path with data.eval.path or data.holdout")
    if data is not None and job["eval_data"] == "named" and not takes_jobs:
        raise Misuse("evaluate() was given data, and the job names evaluation data, too "
                     "(data.eval.path); leave one of the two out, or evaluate on the job's data "
                     "before, by evaluate(fn)")


def check_name(name: Any, before: Sequence[Evaluation]) -> str:
    """The name of the next evaluation; \"\": it is the first, and has none. Raises Misuse."""
    if name is None and not before:
        return ""
    if name is None:
        raise Misuse("evaluate() was called before: give this evaluation a name, as "
                     "run.evaluate(fn, data, name=\"test\"), or let one function give all metrics of "
                     "the same data")
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z0-9_.-]{1,32}", name):
        raise Misuse(f"evaluate(name={name!r}): a name has 1 to 32 letters from a to z and A to Z, "
                     "digits, '_', '.' and '-'")
    if any(evaluation.name == name for evaluation in before):
        raise Misuse(f"evaluate(name={name!r}) was called before; give each evaluation another name")
    return name


class Evaluation:
    """One evaluation, from the arguments of run.evaluate(). Messages call it `who`."""

    def __init__(self, function: Callable[[Any], Any], data: Any, workers: int | None, collate: Any,
                 name: str = "", is_first: bool = True):
        if not callable(function):
            raise Misuse("evaluate(fn, data): fn takes a batch and returns its mean loss")
        self.name = name
        self.who = f"the evaluation \"{name}\"" if name else "the evaluation"
        self._is_first = is_first
        self._function = function
        self._source: Source | None = None
        self._job_data: JobData | None = None
        self.is_of_job = data is None
        self.samples = 0  # of the job's data: known once they are open
        if data is None:
            if workers is not None or collate is not None:
                raise Misuse("evaluate(workers=, collate=) are for a data set of the script's own; the "
                             "job's data are read by threads (data.threads), as its keys say")
        elif isinstance(data, int) and not isinstance(data, bool):
            if data < 1:
                raise Misuse(f"evaluate(fn, {data}): the number of samples is 1 or more")
            if workers or collate is not None:
                raise Misuse("evaluate(fn, n): fn reads the samples itself, so workers= and collate= "
                             "have nothing to do; give it a dataset instead of a number")
            self.samples = data
        else:
            self._source = _source_of(data, collate)
            self.samples = self._source.samples
        self._workers = workers if workers is not None else \
            (self._source.workers or 0 if self._source is not None else 0)
        self._feed: Feed | None = None
        self._fingerprint = "" if data is None else f"{self.samples} samples"
        self._names: tuple[str, ...] = ()
        self.knows_right = False

    def open(self, job: Mapping[str, str]) -> contextlib.AbstractContextManager[Any]:
        """Starts data processes, before there are threads, and computes the data's fingerprint."""
        seed = int(job["seed"]) ^ _SEED
        self._batch, self._is_exact = int(job["eval_batch"]), job["exact"] == "1"
        if self._source is None:
            return contextlib.nullcontext()
        self._feed = feed = Feed(self._source, seed=seed, workers=self._workers)
        closing = contextlib.ExitStack()
        closing.callback(feed.close)
        with self._named():
            feed.start()
            self._fingerprint = facts(self._source, seed, exact=self._is_exact).fingerprint
        return closing

    def read_from(self, data: JobData) -> None:
        """The job's data are open. REQUIRES: is_of_job."""
        self._job_data, self.samples = data, data.eval_samples

    def try_out(self, core: Core, kept: Kept, buffers: Buffers) -> None:
        """Scores the first batch twice: learns which scores there are, and whether they agree."""
        task = CoreTask(begin=0, end=min(self._batch, self.samples))
        begun, hidden = time.monotonic(), Hidden(kept.modules)
        first = self._score(task, task.end, kept, buffers)
        hidden.passed(f"{self.who} of a batch", _AGAINST_HIDDEN)
        self._names = tuple(name for name, _ in first.metrics)
        self.knows_right = first.correct is not None
        if self._is_exact and time.monotonic() - begun < _LONG_TRIAL_S:
            again = self._score(task, task.end, kept, buffers)
            hidden.passed(f"{self.who} of a batch", _AGAINST_HIDDEN)
            if repr(first) != repr(again):
                raise LockstepError(f"{self.who} computed the same batch twice, and it came out "
                                    f"different ({first} and {again}): {_CAUSES}", CONFIG)
        core.evaluates("" if self._is_first else self.name, self.samples, self._fingerprint,
                       self._names, self.knows_right)

    def answer(self, order: Order, kept: Kept, buffers: Buffers) -> Reply:
        score = self._score(CoreTask.from_buffer_copy(order.task), order.share_end, kept, buffers)
        names = tuple(name for name, _ in score.metrics)
        if names != self._names or (score.correct is not None) != self.knows_right:
            shown = [*names, *["correct"] * (score.correct is not None)]
            before = [*self._names, *["correct"] * self.knows_right]
            raise Misuse(f"{self.who} gave {shown} for a batch, and {before} for the first one; "
                         "give the same for every batch")
        self._kept = (ctypes.c_double * max(1, len(names)))(*[value for _, value in score.metrics])
        return Reply(loss=score.loss, count=score.count, correct=score.correct or 0,
                     metrics=self._kept)

    def _score(self, task: CoreTask, share_end: int, kept: Kept, buffers: Buffers) -> Score:
        batch = self._take(task, share_end)
        buffers.restore()  # a slot may have been aborted
        with _evaluating(kept):
            _seeds.seed_all(task.seed)
            result = self._function(batch)
        buffers.restore()
        changed = buffers.name_of_changed()
        if changed is not None:
            raise Misuse(f"{self.who} changed the buffer {changed}; an evaluation leaves the model "
                         "as it is")
        return score_of(result, task.end - task.begin, self.who)

    def _take(self, task: CoreTask, share_end: int) -> Any:
        """The batch; requests the ones after it."""
        if self._job_data is not None:
            return self._job_data.take_eval(task.begin, task.end)
        if self._feed is None:
            return range(task.begin, task.end)
        tasks = [self._task(begin, min(begin + self._batch, share_end)) for begin in
                 range(task.begin, min(share_end, task.begin + self._batch * (1 + 2 * self._workers)),
                       self._batch)]
        with self._named():
            if self._workers:
                numbers = {known.step for known in tasks}
                self._feed.forget(lambda known: known.step not in numbers)
                for known in tasks:
                    self._feed.request(known)
            return self._feed.take(tasks[0]).value

    def _task(self, begin: int, end: int) -> Task:
        places = list(range(begin, end))
        return Task(begin // self._batch, 0, 0, places, places)

    @contextlib.contextmanager
    def _named(self) -> Iterator[None]:
        try:
            yield
        except DataError as why:
            of = f" of \"{self.name}\"" if self.name else ""
            raise DataError(why.code, f"in the evaluation data{of}, whose batches count as steps: "
                                      f"{why.text}") from None


@contextlib.contextmanager
def _evaluating(kept: Kept) -> Iterator[None]:
    """Puts all kept modules into eval(), without gradients. Afterwards restores modes and frozen
    parameters, since only workers with a share of the evaluation run its function."""
    modules = [part for module in kept.modules.values() for part in module.modules()]
    were = [part.training for part in modules]
    parameters = [parameter for module in kept.modules.values() for parameter in module.parameters()]
    required = [parameter.requires_grad for parameter in parameters]
    try:
        for module in kept.modules.values():
            module.eval()
        torch.clear_autocast_cache()  # the function may put other weights in than slots have cast
        with torch.no_grad():
            yield
    finally:
        for part, was in zip(modules, were):
            part.training = was
        for parameter, was in zip(parameters, required):
            if parameter.requires_grad != was:
                parameter.requires_grad_(was)
        torch.clear_autocast_cache()  # casts that were made here have no gradient, or are of others


class Evaluates:
    """The part of a Run that scripts evaluate with."""

    _evaluations: list[Evaluation]

    def evaluate(self, function: Callable[[Any], Any], data: Any = None, *, name: str | None = None,
                 workers: int | None = None, collate: Any = None) -> None:
        """`function(batch)` gives the score of a batch of evaluation data: its mean loss, or a dict
        with "loss" and optionally "correct" (right predictions), "count" (what the loss is the mean
        over, where that is not the batch's samples), and metrics by name (means over the samples).

        data: a map-style Dataset or a DataLoader, read in its order in batches of train.eval_batch;
        or a number of samples, and the function gets a range of their numbers. None: the evaluation data
        that the job names (data.eval.path, data.holdout), as Batch. name: of an evaluation after the
        first; what it finds stands beside the first one's as metrics, NAME/loss. The first one decides
        which checkpoint is the best, and patience. Before batches(), once for each evaluation.
        The run then evaluates at the end of every epoch, after every eval.every_steps steps, and at
        its end. The kept modules are in eval() meanwhile, under no_grad().
        """
        before = self._evaluations
        name = check_name(name, before)
        if self._has_looped:  # type: ignore[attr-defined]
            raise Misuse("evaluate() came after batches(); call it before the loop")
        check_eval_data(self._job, data,  # type: ignore[attr-defined]
                        any(evaluation.is_of_job for evaluation in before))
        before.append(Evaluation(function, data, workers, collate, name, not before))
