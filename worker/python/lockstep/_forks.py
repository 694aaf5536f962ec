"""Forks that a script makes of its training process, by os.fork() or multiprocessing.

A fork inherits the handlers by which the run hears of SIGTERM and SIGUSR1, and the pipe that they
write to: the run would hear of a signal to the child. So these signals wait while a fork is made, and
the child has the handlers that Python knows of before it takes any.
"""
from __future__ import annotations

import os
import signal
import threading

SIGNALS = (signal.SIGTERM, signal.SIGUSR1)


class Forks:
    """From now on, until stop(). A process makes one: Python forgets no function of a fork."""

    def __init__(self) -> None:
        self._is_on = True
        self._of_thread = threading.local()
        os.register_at_fork(before=self._before, after_in_parent=self._in_parent,
                            after_in_child=self._in_child)

    def stop(self) -> None:
        """The run has no handlers any more."""
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
