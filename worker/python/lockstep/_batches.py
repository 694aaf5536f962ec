"""Where the batches of a run come from: a data set of the script, or the data that its job names."""
from __future__ import annotations

import ast
import contextlib
import linecache
import sys
import types
from typing import Any, Sequence

from ._ahead import Ahead
from ._core import Core
from ._data import Drawing, Feed, Source, facts, unpack
from ._device import Sender
from ._errors import Misuse
from ._eval import Evaluation
from ._job_data import JobData


def outer_loop(text: str, line: int) -> int | None:
    """The line of a `for` around the loop whose batches() is called in this line of `text`, in the same
    function: an epoch loop."""
    functions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
    node, found = ast.parse(text), None
    while True:
        inner = next((child for child in ast.iter_child_nodes(node) if getattr(child, "lineno", line + 1)
                      <= line <= (getattr(child, "end_lineno", None) or line)), None)
        if inner is None:
            return found
        if isinstance(inner, functions):
            found = None
        elif isinstance(inner, ast.For) and line >= inner.body[0].lineno > inner.iter.end_lineno:
            found = inner.lineno
        node = inner


def check_one_loop(frame: types.FrameType) -> None:
    """Raises Misuse in an epoch loop, which would begin a second loop only once the run is over."""
    text = "".join(linecache.getlines(frame.f_code.co_filename))
    try:
        line = outer_loop(text, frame.f_lineno)
    except (SyntaxError, ValueError, RecursionError):  # no file of Python
        return
    if line is not None:
        raise Misuse(f"batches() is called in the body of the loop of line {line}: a run has one loop "
                     "over its data, through all epochs, and train.epochs or train.max_steps say how "
                     "long it is; loop over run.epochs() there, or take batches() out of that loop, and "
                     "read run.epoch in its body")


def check_arguments(job: dict[str, str], data: Any, workers: int | None, collate: Any,
                    frame: types.FrameType | None = None, weights: Any = None) -> None:
    """Raises Misuse unless either the script or the job names the data, and if `frame` calls
    batches() in an epoch loop."""
    has_data = job["has_data"] == "1"
    if data is None and not has_data:
        raise Misuse("batches() was given no data set, and the job names no data; give it one, or "
                     "set data.train.path")
    if data is not None and has_data:
        raise Misuse("batches() was given a data set, and the job names data, too "
                     "(data.train.path); leave one of the two out")
    if frame is not None:
        check_one_loop(frame)
    if data is None and (workers is not None or collate is not None):
        raise Misuse("batches(workers=, collate=) are for a data set of the script's own; the job's "
                     "data are read by threads (data.threads), as its keys say")
    if data is None and weights is not None:
        raise Misuse("batches(weights=) is for a data set of the script's own; give the job's data sets "
                     "weights in data.mix, or the samples weights in the loss (data.weight)")


def open_batches(core: Core, is_worker: bool, stack: contextlib.ExitStack,
                 evaluations: Sequence[Evaluation], data: Any, workers: int | None, collate: Any,
                 weights: Any = None, turns: int = 1,
                 sender: Sender | None = None) -> tuple[Ahead | JobData, int]:
    """Returns the batches and the number of samples. REQUIRES: check_arguments(). `stack` closes
    everything that this opens. `evaluations` fork their processes here, too: before the core has
    threads, and before samples are drawn. `turns`: of a batch. `sender`: to the device where the
    script wants them."""
    job = core.job
    if data is None:
        for evaluation in evaluations:
            stack.enter_context(evaluation.open(job))
        of_job = [evaluation for evaluation in evaluations if evaluation.is_of_job]
        batches = JobData(core, is_worker, bool(of_job), sender)
        for evaluation in of_job:
            evaluation.read_from(batches)
        return batches, batches.samples
    source = unpack(data, collate)
    drawing = _drawing_of(source, weights)
    if workers is None:
        workers = source.workers or 0
    seed = int(job["seed"])
    feed = Feed(source, seed=seed, workers=workers)
    stack.callback(feed.close)
    feed.start()
    for evaluation in evaluations:
        stack.enter_context(evaluation.open(job))
    known = facts(source, seed, exact=job["exact"] == "1")
    core.declare(known.samples, known.fingerprint)
    if said := source.about_batch_size(int(job["global_batch"]), int(job["slots"])):
        print(f"lockstep: {said}", file=sys.stderr)
    return Ahead(core, feed, 2 * workers, drawing, turns, sender), known.samples


def _drawing_of(source: Source, weights: Any) -> Drawing | None:
    if weights is not None and source.weights is not None:
        raise Misuse("batches() was given weights=, and a DataLoader with a WeightedRandomSampler; leave "
                     "one of the two out")
    weights = source.weights if weights is None else weights
    return None if weights is None else Drawing(weights, source.samples)
