"""SIGTERM and SIGUSR1 of a worker, by which its run hears that it should stop.

During the loop the run's own handler, a C function that Python does not know of, has them. A
message names a handler of the script's, which gets them back after the loop.
"""
from __future__ import annotations

import ctypes
import signal
import sys
from typing import Any

from ._forks import SIGNALS, Forks

_LIBC = ctypes.CDLL(None, use_errno=True)
_ACTION_BYTES = 256  # as many as a struct sigaction has, or more; the handler is its first field
_POINTER_BYTES = ctypes.sizeof(ctypes.c_void_p)


class StopSignals:
    """Active from before the run begins until stop(). Main thread only."""

    def __init__(self, is_worker: bool) -> None:
        self._forks = Forks()
        self._is_on = is_worker  # a run of one process keeps the script's handlers
        self._of_run: dict[int, Any] = {}
        self._named: set[tuple[int, str]] = set()
        if is_worker:
            for number in SIGNALS:
                self._name(number)

    def check(self) -> None:
        """Call it with every order. From the first one on the run has its handlers."""
        for number in SIGNALS if self._is_on else ():
            now = ctypes.create_string_buffer(_ACTION_BYTES)
            _LIBC.sigaction(number, None, now)
            ours = self._of_run.setdefault(number, now)
            if now.raw[:_POINTER_BYTES] != ours.raw[:_POINTER_BYTES]:
                _LIBC.sigaction(number, ours, None)
                self._name(number)

    def stop(self) -> None:
        """The run no longer has handlers."""
        self._forks.stop()
        for number in SIGNALS if self._is_on else ():
            handler = signal.getsignal(number)
            if handler is not None:  # else it was there before Python
                signal.signal(number, handler)
        self._is_on = False

    def _name(self, number: int) -> None:
        handler = signal.getsignal(number)
        name = getattr(handler, "__qualname__", type(handler).__qualname__)
        if not callable(handler) or (number, name) in self._named:
            return
        self._named.add((number, name))
        print(f"lockstep: the script's handler {name}() of {signal.Signals(number).name} waits until the "
              "loop is over: in the loop this signal stops the worker, with a checkpoint, and SystemExit "
              "runs what stands in `finally`", file=sys.stderr)
