"""Reports the end of a script's process to its run."""
from __future__ import annotations

import builtins
import contextlib
import logging
import multiprocessing.util
import os
import sys
import time
from typing import Iterator

from . import _core
from ._core import CoreError, Reply
from ._epochs import Epochs
from ._errors import (INTERNAL, USAGE, LockstepError, detail_of, exit_code_of, fails_alike,
                      hint_of, is_of_machine, is_of_script, text_of)
from ._stage import Stage
from ._state import Kept
from ._threads import watch_threads
from ._translate import ours

_LEFT = ("left its loop, which ends by itself when the run is complete; do not break or return out of "
         "it: run.finish() ends a run early, as complete")
_LAST_ORDER_S = 15.0  # after a failure: for the answer of the coordinator


class Ends:
    """The part of a Run that ends it."""

    _core: _core.Core
    _kept: Kept
    _is_worker: bool
    _pid: int
    _step: int
    _epochs: Epochs | None = None  # the script's loop is over run.epochs()
    _stage = Stage.BEFORE
    _is_complete = False  # every step is applied
    _has_order = False  # that is not answered
    _is_left = False  # the loop, by `break`, `return` or an error, before its end
    _hint: str | None = None  # where the script fails now

    def end(self, error: BaseException | None) -> int:
        """The script has ended, with this error or without: tells the run, and returns the exit
        code of the process."""
        stage, self._stage = self._stage, Stage.ENDED
        if os.getpid() != self._pid:  # a process that the script forked
            return 0 if error is None else exit_code_of(error)
        watch_threads()
        error = ours(error)
        if self._epochs is not None:
            self._epochs.note_failure(error, self._step)
        if stage is Stage.ENDED:
            code = 0 if error is None else exit_code_of(error)
            if self._is_complete and code != 0:  # the agent tells it (deploy/agent/agent.h)
                print(f"lockstep: after its loop the script failed ({type(error).__name__}), so its "
                      f"exit code is {code}; the run is complete all the same", file=sys.stderr)
            return code
        is_machines = is_of_machine(error)
        code = INTERNAL if is_machines else USAGE
        if isinstance(error, (LockstepError, KeyboardInterrupt)):
            code = exit_code_of(error)
        if stage is Stage.TRAINING:
            is_exit = error is None or isinstance(error, (SystemExit, GeneratorExit))
            if not is_exit and not isinstance(error, LockstepError):
                code = USAGE if fails_alike(error) else INTERNAL
            text = f"the script {_LEFT}" if is_exit else f"the script failed: {type(error).__name__}: {error}"
            print(f"lockstep: {text}", file=sys.stderr)
            code = self._fail(code, text + detail_of(error),
                              has_raised=is_of_script(error) and not fails_alike(error))
        elif self._is_left and error is None:
            print(f"lockstep: the script {_LEFT}", file=sys.stderr)
        elif not isinstance(error, LockstepError):
            print(f"lockstep: the script ended {stage.value}"
                  + ("" if error is None else f" ({type(error).__name__})")
                  + ("; this machine is short of something, and another attempt may do"
                     if is_machines else "; every attempt would end so, and the run ends"),
                  file=sys.stderr)
        self._say_hint(error)
        self._core.close(code)
        return code

    def _say_hint(self, error: BaseException | None) -> None:
        hint = self._hint or hint_of(error)
        if hint is not None:
            print(f"lockstep: {hint}", file=sys.stderr)

    def abandon(self) -> None:
        """Closes the run without end(). A run of one process has no agent to tell."""
        if self._stage is not Stage.ENDED and os.getpid() == self._pid:
            self._say_hint(getattr(sys, "last_value", None))
            if self._has_order:
                self._fail(INTERNAL, "the script ended in its loop")
            self._core.close(INTERNAL)
            self._stage = Stage.ENDED

    @contextlib.contextmanager
    def _noting_who_leaves(self) -> Iterator[None]:
        try:
            yield
        except GeneratorExit:
            self._is_left = self._stage is not Stage.ENDED
            raise

    def at_exit(self) -> None:
        """Python ends, and the process is a run of one: if the loop was left, the process ends as a
        worker would. An error has its own exit code."""
        # A script that leaves a loop over run.epochs() does not close it.
        is_open = self._epochs is not None and self._stage in (Stage.TRIAL, Stage.TRAINING)
        is_left = (self._is_left or is_open) and self._stage is not Stage.ENDED and \
            os.getpid() == self._pid
        self.abandon()
        if not is_left or getattr(sys, "last_value", None) is not None:
            return
        print(f"lockstep: the script {_LEFT}", file=sys.stderr)
        if sys.flags.interactive or hasattr(builtins, "get_ipython") or sys.gettrace() is not None:
            return  # an interactive Python, or a debugger that a person has left
        logging.shutdown()
        multiprocessing.util._exit_function()  # what comes after this handler
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(USAGE)

    def give_way(self) -> None:
        """Another script of this process begins a run: this run stops watching the process."""
        self.abandon()
        self._kept.remove_guard()

    def _fail(self, code: int, text: str, has_raised: bool = False) -> int:
        """Reports the failure as the answer to the order in hand, and waits for the end."""
        failed = Reply(code=code, text=text_of(text), has_raised=has_raised)
        deadline = time.monotonic() + _LAST_ORDER_S
        if not self._has_order and not self._is_worker:
            return code
        with contextlib.suppress(CoreError):
            order = self._core.next_until(failed if self._has_order else None, deadline)
            while order is not None and order.kind != _core.END:  # of another generation
                order = self._core.next_until(failed, deadline)
            if order is not None and order.exit_code != 0:
                return order.exit_code
        return code
