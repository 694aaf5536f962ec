"""Looks whether a debugger has stopped the main thread, so that the run does not treat a worker
whose script waits for a person as one that hangs."""
from __future__ import annotations

import sys
import threading
from types import FrameType
from typing import Callable

_PERIOD_S = 0.5
# Modules whose frames are on top of the script's while they wait: pdb and its descendants, debugpy.
_DEBUGGERS = ("bdb", "pdb", "IPython", "debugpy", "pydevd", "_pydevd_bundle", "remote_pdb")


def is_stopped(frame: FrameType | None) -> bool:
    """`frame`: where a thread is. True if a debugger's frames, or the function of sys.settrace(),
    stand on top of the script's."""
    while frame is not None:
        name = frame.f_globals.get("__name__") or ""
        if name.split(".")[0] in _DEBUGGERS:
            return True
        if name == "__main__":  # below the script are the frames of its starter
            return False
        caller = frame.f_back
        if caller is not None and frame.f_code is _code_of(caller.f_trace):
            return True
        frame = caller
    return False


def _code_of(tracer: object) -> object:
    return getattr(getattr(tracer, "__func__", tracer), "__code__", None)


class Watch:
    """Tells `note` whenever a debugger stops the thread that makes this, and when it goes on."""

    def __init__(self, note: Callable[[bool], None]):
        self._note = note
        self._watched = threading.get_ident()
        self._over = threading.Event()
        thread = threading.Thread(target=self._look, name="lockstep-debugger", daemon=True)
        thread.pydev_do_not_trace = True  # type: ignore[attr-defined]  # debugpy stops all others
        thread.start()

    def _look(self) -> None:
        was_stopped = False
        while not self._over.wait(_PERIOD_S):
            stopped = is_stopped(sys._current_frames().get(self._watched))
            if stopped != was_stopped:
                self._note(stopped)
            was_stopped = stopped

    def close(self) -> None:
        self._over.set()
