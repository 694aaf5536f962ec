"""Settings that Lockstep's own child processes make after a fork."""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import os
import signal
import sys
import warnings

_PR_SET_PDEATHSIG = 1
_PR_SET_NAME = 15

_LIBC = ctypes.CDLL(None, use_errno=True)
# Slurm and terminals send these to all processes of a worker; the main process answers them.
_NOTICES = (signal.SIGHUP, signal.SIGINT, signal.SIGUSR1, signal.SIGUSR2)
STACK = signal.SIGRTMIN + 9  # to a data process: it writes to stderr where it stands
_RESET = (signal.SIGALRM, signal.SIGCHLD, signal.SIGQUIT)


def fork_quietly() -> int:
    """os.fork() without the warning about threads: torch's OpenMP threads are idle then."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


def die_with_parent(parent: int) -> None:
    """Has the kernel kill this process when the thread that forked it ends."""
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:  # It died between fork and prctl.
        os._exit(0)


def set_name(name: str) -> None:
    """Sets the name that ps and top show; 15 bytes count."""
    _LIBC.prctl(_PR_SET_NAME, name.encode(), 0, 0, 0)


def show_stack_on_demand() -> None:
    """The process answers the signal STACK, whatever it computes or waits for."""
    with contextlib.suppress(AttributeError, OSError, ValueError):  # stderr is no file
        faulthandler.register(STACK, file=sys.stderr, all_threads=True)


def set_signals(ends_on_sigterm: bool) -> None:
    """Drops the handlers that the fork brought along and unblocks all signals."""
    signal.set_wakeup_fd(-1)
    for number in _NOTICES:
        signal.signal(number, signal.SIG_IGN)
    for number in _RESET:
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGTERM, signal.SIG_DFL if ends_on_sigterm else signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
