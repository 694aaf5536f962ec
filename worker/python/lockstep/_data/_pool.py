"""The data processes of a run, seen from the main process."""

from __future__ import annotations

import contextlib
import itertools
import logging
import os
import select
import signal
import socket
import threading
from collections import deque
from collections.abc import Callable
from typing import Any

from ._errors import INTERNAL, DataError
from ._slabs import SlabReader
from ._wire import FREE, FREE_BODY, SPAWN, SPAWN_BODY, SPAWNED_BODY, Channel
from ._zygote import fork_zygote

POLL_MS = 50  # Ctrl-C is seen within this time, with any handler of the signal.
_CLOSE_WAIT_MS = 2000

_LOG = logging.getLogger("lockstep.data")


class DataProcess:
    """One data process: `in_work` holds its tasks, in the order of its answers."""

    def __init__(
        self, pid: int, serial: int, channel: Channel, returned: deque[tuple[int, int]]
    ) -> None:
        self.pid = pid
        self.serial = serial  # Unlike a pid, never used again.
        self.channel = channel
        # If another fork inherited the socket, it would never show that the process hung up.
        self.exit_descriptor = os.pidfd_open(pid)
        self.slabs = SlabReader(serial, returned)
        self.in_work: deque[Any] = deque()

    def free(self, slab: int) -> None:
        """Gives a slab back to the process."""
        if not self.channel.closed:
            self.channel.put(FREE, FREE_BODY.pack(slab))

    def close(self) -> None:
        self.channel.close()
        os.close(self.exit_descriptor)


def _ending(status: int) -> str:
    code = os.waitstatus_to_exitcode(status)
    if code >= 0:
        return f"exit code {code}"
    with contextlib.suppress(ValueError):
        return signal.Signals(-code).name
    return f"signal {-code}"


class Pool:
    """The zygote and its data processes. For the main thread only."""

    def __init__(self, workers: int, body: Callable[[Channel], None]) -> None:
        self._owner = os.getpid()
        if threading.current_thread() is not threading.main_thread():
            raise RuntimeError(
                "data processes end with the thread that starts them: start them "
                "in the main thread"
            )
        # (serial, slab) of slabs that no tensor needs any more; any thread appends.
        self.returned: deque[tuple[int, int]] = deque()
        self.processes: list[DataProcess] = []
        self._serials = itertools.count()
        try:
            self._zygote, self._control = fork_zygote(body)
        except OSError as error:
            raise DataError(
                INTERNAL,
                f"cannot fork data processes: {error}; lower workers= or "
                "the memory that the script takes",
            ) from error
        try:
            for _ in range(workers):
                self.processes.append(self._spawn(0)[0])
        except BaseException:
            self.close()
            raise

    def _spawn(self, replaced: int) -> tuple[DataProcess, int]:
        self._control.put(SPAWN, SPAWN_BODY.pack(replaced))
        while (frame := self._control.wait_frame(POLL_MS)) is None:
            self._check_zygote()
        status, pid = SPAWNED_BODY.unpack(frame[1])
        descriptor = self._control.next_descriptor()
        if pid < 0:
            os.close(descriptor)
            raise DataError(
                INTERNAL,
                f"cannot fork a data process: {os.strerror(-pid)}; lower "
                "workers= or the memory that the script takes",
            )
        channel = Channel(socket.socket(fileno=descriptor))
        return DataProcess(pid, next(self._serials), channel, self.returned), status

    def _check_zygote(self) -> None:
        """Never forks a new zygote: the main process has threads by now, and a lock that one of
        them holds would stay locked in the child forever. The worker is restarted instead."""
        if self._control.closed:
            raise DataError(
                INTERNAL,
                f"process {self._zygote}, which starts the data processes, is gone; look for who "
                "killed it (dmesg shows the kernel's out-of-memory kills)",
            )

    def wait(self, timeout_ms: int) -> list[DataProcess]:
        """Waits until a process has answered or died; returns those whose channels to look at."""
        poll = select.poll()
        poll.register(self._control, select.POLLIN)
        by_descriptor: dict[int, DataProcess] = {}
        for process in self.processes:
            events = select.POLLIN | (select.POLLOUT if process.channel.has_output else 0)
            poll.register(process.channel, events)
            poll.register(process.exit_descriptor, select.POLLIN)
            by_descriptor[process.channel.fileno()] = process
            by_descriptor[process.exit_descriptor] = process
        ready: dict[int, DataProcess] = {}
        for descriptor, _ in poll.poll(timeout_ms):
            if descriptor not in by_descriptor:
                self._control.read()
                self._check_zygote()
                continue
            process = by_descriptor[descriptor]
            exited = descriptor == process.exit_descriptor
            process.channel.flush()
            process.channel.read()
            process.channel.closed = process.channel.closed or exited
            ready[process.pid] = process
        return list(ready.values())

    def free_returned(self) -> int:
        """Gives slabs that no tensor needs back to their processes; returns how many."""
        count = 0
        while self.returned:
            serial, slab = self.returned.popleft()
            count += 1
            for process in self.processes:
                if process.serial == serial:
                    process.free(slab)
        return count

    def replace(self, process: DataProcess) -> str:
        """Puts a new process in the place of one that died; returns how that one ended."""
        process.close()
        fresh, status = self._spawn(process.pid)
        self.processes[self.processes.index(process)] = fresh
        ending = _ending(status)
        _LOG.warning(
            "data process %d died (%s); process %d computes its tasks again",
            process.pid,
            ending,
            fresh.pid,
        )
        return ending

    def close(self) -> None:
        """Ends all processes. Batches that were handed out stay valid. Does nothing in a fork of
        the main process, which does not own them."""
        if os.getpid() != self._owner:
            return
        self._control.close()
        for process in self.processes:
            process.close()
        self.processes = []
        with contextlib.suppress(ChildProcessError, ProcessLookupError):
            descriptor = os.pidfd_open(self._zygote)
            poll = select.poll()
            poll.register(descriptor, select.POLLIN)
            if not poll.poll(_CLOSE_WAIT_MS):
                os.kill(self._zygote, signal.SIGKILL)
            os.close(descriptor)
            os.waitpid(self._zygote, 0)
