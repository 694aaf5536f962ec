"""Feed: fetches the batches of tasks, ahead of need, by data processes or in process."""

from __future__ import annotations

import contextlib
import os
import time
from array import array
from collections import deque
from collections.abc import Callable

import torch

from .._waits import WAITS
from ._data_process import serve_tasks
from ._errors import BAD_DATA, INTERNAL, USAGE, DataError
from ._fetch import Fetcher, check_length, describe_range
from ._libraries import seed_libraries
from ._pack import unpack_value
from ._pool import POLL_MS, DataProcess, Pool
from ._process import STACK
from ._seeds import import_numpy, in_process
from ._slabs import Written
from ._source import Source
from ._task import Batch, Task, encode_task
from ._wire import BATCH, BATCH_HEAD, ERROR_HEAD, NUMBER, TASK

_IN_WORK = 2  # Tasks a process has in work: it computes one while the other is taken.
_LONG_WAIT_S = 15.0  # for a batch, before a message
_MAX_DEATHS = 2  # One death proves nothing about a task: a kill -9 from outside hits any process.

_QUEUED, _SENT, _DONE = range(3)


class _Work:
    """A requested task. It is in `Feed._works` until it is taken or forgotten."""

    def __init__(self, task: Task, key: bytes) -> None:
        self.task = task
        self.key = key
        self.number = 0
        self.state = _QUEUED
        self.wanted = True  # False: forgotten while in work; the answer is dropped.
        self.deaths = 0
        self.error: DataError | None = None
        self.process: DataProcess | None = None  # The process that has the batch in its slab.
        self.written: Written | None = None
        self.indices: list[int] = []


class Feed:
    """Fetches batches. `workers` changes no bit of them; with 0, take() computes in process.

    Samples are seeded by (seed, epoch, position): torch's CPU generator, numpy's and Python's.
    With `__getitems__` the slot is seeded once, by its first position; so is collate. Data
    processes see the dataset as it was at start(); they compute with one thread. Batches are
    contiguous CPU tensors that stay valid as long as they are held, also after close(). take() may
    leave the generators of the main process in any state, so the caller seeds them afterwards.

    For the main thread only. Batches may be dropped by any thread.
    """

    def __init__(
        self,
        source: Source,
        *,
        seed: int,
        workers: int = 0,
        ahead: int | None = None,
    ) -> None:
        """`ahead`: the most batches that are computed and not yet taken; 2 a worker if None."""
        if workers < 0:
            raise DataError(USAGE, f"workers={workers}; set 0 or more data processes")
        self._source = source
        self._workers = workers
        self._fetcher = Fetcher(source, seed)
        self._ahead = max(1, ahead if ahead is not None else _IN_WORK * workers)
        # Beyond this many slabs under tensors that the script holds, batches are copied out.
        self._max_held = _IN_WORK * workers + 4
        self._held = 0
        self._pool: Pool | None = None
        self._closed = False
        self._works: dict[bytes, _Work] = {}
        self._queue: deque[_Work] = deque()
        self._busy = 0  # Works that are sent or done.
        self._number = 0
        self._epoch: int | None = None

    def start(self) -> None:
        """Forks the zygote and the data processes; does nothing for workers=0.

        REQUIRES: the main thread, before any C++ thread exists and before facts(), so that data
        processes share no file that a sample opens. Raises DataError(70).
        """
        import_numpy()
        seed_libraries()
        if self._workers and self._pool is None:
            fetcher = self._fetcher
            self._pool = Pool(self._workers, lambda channel: serve_tasks(fetcher, channel))

    def request(self, task: Task) -> None:
        """Requests a task ahead of need. A task that is requested twice is computed once.

        Raises DataError(70) if the data processes cannot go on.
        """
        if self._workers:
            self._ask(task)
            self._pump(0)

    def forget(self, predicate: Callable[[Task], bool]) -> None:
        """Drops the tasks that a change of plan made useless: those with predicate(task)."""
        for work in list(self._works.values()):
            if predicate(work.task):
                work.wanted = False
                if work.state != _SENT:
                    self._drop(work)

    def take(self, task: Task) -> Batch:
        """The batch of the task; waits for it, and requests it first if that was not done before.

        Raises DataError: 65 if the sample, collate or len(dataset) is at fault or the task killed
        two data processes, 70 if the data processes cannot go on. Ctrl-C is seen within 50 ms.
        """
        if self._closed:
            raise DataError(INTERNAL, "a batch was asked for after the feed was closed")
        if not self._workers:
            with in_process():
                text, blobs = self._fetcher.compute(task)
            if not self._fetcher.makes_memory:
                blobs = [b.clone(memory_format=torch.contiguous_format) for b in blobs]
            return Batch(unpack_value(text, blobs), list(task.indices))
        if task.epoch != self._epoch:
            check_length(self._source, task.epoch)  # Data processes look at their own copies.
            self._epoch = task.epoch
        work = self._ask(task)
        self._pump(0)
        asked = time.monotonic()
        while work.state != _DONE:
            if asked is not None and time.monotonic() - asked > _LONG_WAIT_S:
                asked = None
                self._say_where(work)
            if work.state == _QUEUED:  # However many other batches are computed and not taken.
                self._queue.remove(work)
                self._send(work)
            self._pump(POLL_MS)
        return self._deliver(work)

    def take_ready(self, task: Task) -> Batch | None:
        """The batch of a requested task, if a data process has made it. Does not wait."""
        work = self._works.get(encode_task(task))
        if not self._workers or work is None:
            return None
        self._pump(0)
        # take() raises the error, where the batch is needed.
        return self._deliver(work) if work.state == _DONE and work.error is None else None

    def _say_where(self, work: _Work) -> None:
        """Says, for a batch that does not come, which process computes it and where that stands."""
        for process in self._running().processes:
            if work in process.in_work:
                at_work = process.in_work[0]
                WAITS.say(
                    f"data process {process.pid} has not computed the samples at "
                    f"{describe_range(at_work.task)} in {_LONG_WAIT_S:.0f} s, and the loop waits for "
                    "them; where the process stands follows. If it waits in a library that had "
                    "started threads before the fork (polars, CUDA, a thread pool), use that library "
                    "in __getitem__ only, or take workers=0"
                )
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process.pid, STACK)

    def close(self) -> None:
        """Ends the data processes. Batches that were taken stay valid."""
        self._closed = True
        self._works.clear()
        self._queue.clear()
        if self._pool is not None:
            self._pool.close()
            self._pool = None

    def _running(self) -> Pool:
        if self._pool is None:
            raise DataError(INTERNAL, "a batch was asked for while the feed was not started")
        return self._pool

    def _ask(self, task: Task) -> _Work:
        key = encode_task(task)
        work = self._works.get(key)
        if work is None:
            work = _Work(task, key)
            self._works[key] = work
            self._queue.append(work)
        work.wanted = True
        return work

    def _send(self, work: _Work) -> None:
        """Gives the task to the process with the least in work."""
        processes = self._running().processes
        process = min(processes, key=lambda p: (p.channel.closed, len(p.in_work)))
        self._number += 1
        work.number = self._number
        process.channel.put(TASK, NUMBER.pack(work.number) + work.key)
        if process.channel.closed:  # It died before it saw the task: _pump() replaces it.
            self._queue.appendleft(work)
            return
        work.state = _SENT
        self._busy += 1
        process.in_work.append(work)

    def _pump(self, timeout_ms: int) -> None:
        """Returns slabs, sends tasks while there is room, takes answers, replaces dead ones."""
        pool = self._running()
        self._held -= pool.free_returned()
        self._send_queued()
        for process in pool.wait(timeout_ms):
            while (frame := process.channel.next_frame()) is not None:
                self._answer(process, *frame)
            if process.channel.closed:
                self._replace(pool, process)
        self._send_queued()

    def _send_queued(self) -> None:
        processes = self._running().processes
        while self._queue and self._busy < self._ahead:
            if all(p.channel.closed or len(p.in_work) >= _IN_WORK for p in processes):
                return
            self._send(self._queue.popleft())

    def _answer(self, process: DataProcess, kind: int, payload: bytes) -> None:
        work: _Work = process.in_work.popleft()
        number = NUMBER.unpack_from(payload)[0]
        if number != work.number:
            raise DataError(
                INTERNAL,
                f"data process {process.pid} answered task {number} while "
                f"{work.number} was due; report this with the log",
            )
        work.state = _DONE
        if kind == BATCH:
            _, slab, is_new, *layout = BATCH_HEAD.unpack_from(payload)
            descriptor = process.channel.next_descriptor() if is_new else None
            work.process = process
            work.written = Written(slab, descriptor, *layout)
            if descriptor is not None:
                try:
                    process.slabs.map(work.written)
                finally:
                    os.close(descriptor)
            indices = array("q")
            indices.frombytes(payload[BATCH_HEAD.size :])
            work.indices = indices.tolist()
        else:
            code = ERROR_HEAD.unpack_from(payload)[1]
            text = payload[ERROR_HEAD.size :].decode("utf-8", "replace")
            work.error = DataError(code, text)
        if not work.wanted:
            self._drop(work)

    def _replace(self, pool: Pool, process: DataProcess) -> None:
        """Queues the tasks of a dead process again. If a task killed it, it was the first."""
        works: list[_Work] = list(process.in_work)
        ending = pool.replace(process)
        self._busy -= len(works)
        if works:
            works[0].deaths += 1
        for work in reversed(works):
            work.state = _QUEUED
            if not work.wanted:
                self._drop(work)
            elif work.deaths < _MAX_DEATHS:
                self._queue.appendleft(work)
            else:
                self._busy += 1
                work.state = _DONE
                work.error = DataError(
                    BAD_DATA,
                    f"the samples at {describe_range(work.task)} killed {work.deaths} data "
                    f"processes, the last by {ending}; fetch them one by one with workers=0",
                )

    def _drop(self, work: _Work) -> None:
        """Forgets a work that no process computes, and frees its slab."""
        del self._works[work.key]
        if work.state == _QUEUED:
            if work in self._queue:
                self._queue.remove(work)
            return
        self._busy -= 1
        if work.process is not None and work.written is not None:
            work.process.free(work.written.slab)

    def _deliver(self, work: _Work) -> Batch:
        del self._works[work.key]
        self._busy -= 1
        if work.error is not None:
            raise work.error
        assert work.process is not None and work.written is not None
        if work.indices != work.task.indices:
            raise DataError(
                INTERNAL,
                f"data process {work.process.pid} fetched other samples "
                f"than {describe_range(work.task)}; report this with the log",
            )
        self._held += 1
        copy = self._held > self._max_held
        text, blobs = work.process.slabs.read(work.written, copy)
        return Batch(unpack_value(text, blobs), work.indices)
