"""The zygote: forks data processes, and new ones for those that die.

It is forked from the main process before any C++ thread exists and never starts a thread, so a
fork from it is safe at any time. It ends with the main process, and the data processes with it.
"""

from __future__ import annotations

import gc
import os
import select
import signal
import socket
import sys
import traceback
from collections.abc import Callable

import torch

from ._errors import INTERNAL
from ._files import check_files, open_again, open_files, OpenFile
from ._process import die_with_parent, fork_quietly, set_name, set_signals, show_stack_on_demand
from ._wire import SPAWN, SPAWN_BODY, SPAWNED, SPAWNED_BODY, Channel

_EXIT_WAIT_MS = 1000


class _Zygote:
    def __init__(self, channel: Channel, body: Callable[[Channel], None]) -> None:
        self._channel = channel
        self._body = body
        self._children: set[int] = set()

    def serve(self) -> None:
        """Forks on demand until the main process hangs up, then kills what it has forked."""
        while (frame := self._channel.wait_frame()) is not None:
            assert frame[0] == SPAWN
            replaced = SPAWN_BODY.unpack(frame[1])[0]
            status = self._reap(replaced) if replaced else 0
            self._spawn(status)
        for child in self._children:
            os.kill(child, signal.SIGKILL)
        for child in self._children:
            os.waitpid(child, 0)

    def _reap(self, child: int) -> int:
        """The wait status of a child that ends, or that is made to end."""
        descriptor = os.pidfd_open(child)
        try:
            poll = select.poll()
            poll.register(descriptor, select.POLLIN)
            if not poll.poll(_EXIT_WAIT_MS):  # It closed its socket and lives on.
                os.kill(child, signal.SIGKILL)
        finally:
            os.close(descriptor)
        self._children.discard(child)
        return os.waitpid(child, 0)[1]

    def _spawn(self, status: int) -> None:
        ours, theirs = socket.socketpair()
        me = os.getpid()
        try:
            child = fork_quietly()
        except OSError as error:
            ours.close()
            answer = SPAWNED_BODY.pack(status, -(error.errno or 1))
            self._channel.put_with_descriptor(SPAWNED, answer, theirs.fileno())
            theirs.close()
            return
        if child == 0:
            theirs.close()
            self._channel.close()
            _run_and_exit(lambda: self._be_data_process(me, ours))
        ours.close()
        self._children.add(child)
        answer = SPAWNED_BODY.pack(status, child)
        self._channel.put_with_descriptor(SPAWNED, answer, theirs.fileno())
        theirs.close()

    def _be_data_process(self, parent: int, end: socket.socket) -> None:
        die_with_parent(parent)
        set_name("lockstep-data")
        set_signals(ends_on_sigterm=True)
        show_stack_on_demand()
        open_again(open_files())  # the zygote's files, which it does not read
        self._body(Channel(end))


def _run_and_exit(body: Callable[[], None]) -> None:
    """Ends the process after `body`: none of the main process's own code may run here."""
    code = INTERNAL
    try:
        body()
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        try:
            sys.stdout.flush()  # Output of samples; the fork brought no unwritten text along.
            sys.stderr.flush()
        finally:
            os._exit(code)


def fork_zygote(body: Callable[[Channel], None]) -> tuple[int, Channel]:
    """Forks the zygote, whose data processes run `body(channel)`; returns its pid and channel.

    REQUIRES: the main thread, before any C++ thread exists. Raises OSError, and DataError(64) for
    an open file that the data processes cannot have for themselves.
    """
    files = open_files()  # before the fork: the main process may read on meanwhile
    check_files(files)
    ours, theirs = socket.socketpair()
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    me = os.getpid()
    # A signal between fork and set_signals() would run the main process's handler in the child.
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        child = fork_quietly()
        if child == 0:
            _run_and_exit(lambda: _be_zygote(me, ours, theirs, body, files))
    except OSError:
        ours.close()
        raise
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        theirs.close()
    return child, Channel(ours)


def _be_zygote(
    parent: int,
    ours: socket.socket,
    theirs: socket.socket,
    body: Callable[[Channel], None],
    files: list[OpenFile],
) -> None:
    die_with_parent(parent)
    open_again(files)
    set_name("lockstep-zygote")
    set_signals(ends_on_sigterm=False)
    ours.close()
    torch.set_num_threads(1)  # The threads of the parent's OpenMP pool did not come along.
    gc.freeze()  # So that collections in data processes do not copy the dataset's pages.
    _Zygote(Channel(theirs), body).serve()
