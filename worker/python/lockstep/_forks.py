"""Forks that a script makes of its training process, by os.fork() or multiprocessing.

A fork inherits the run's handlers of SIGTERM and SIGUSR1, and the pipe that they write to, so the
run would hear of a signal to the child. So these signals wait during a fork, and the child restores
the handlers that Python knows of before it takes any.
"""
from __future__ import annotations

import os
import signal
import threading

SIGNALS = (signal.SIGTERM, signal.SIGUSR1)


class Forks:
    """Active until stop(). A process makes one, because Python never forgets a fork's functions."""

    def __init__(self) -> None:
        self._is_on = True
        self._of_thread = threading.local()
        os.register_at_fork(before=self._before, after_in_parent=self._in_parent,
                            after_in_child=self._in_child)

    def stop(self) -> None:
        """The run no longer has handlers."""
        self._is_on = False

    def _before(self) -> None:
        self._of_thread.mask = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)

    def _in_parent(self) -> None:
        signal.pthread_sigmask(signal.SIG_SETMASK, self._of_thread.mask)

    def _in_child(self) -> None:
        try:
            for number in SIGNALS if self._is_on else ():
                # None: a handler that was there before Python.
                signal.signal(number, signal.getsignal(number) or signal.SIG_DFL)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, self._of_thread.mask)
