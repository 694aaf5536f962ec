"""Tells a person what a script's process has waited for so long that it may never come.

Writes to stderr. A worker's stderr is a file, so a worker also writes the sentence into
logs/waits.txt of the run directory, and `lockstep run` shows it (deploy/cli/run/shown_notes.h). Any
thread.
"""
from __future__ import annotations

import contextlib
import os
import pathlib
import sys


class Waits:
    """One for a process."""

    def __init__(self) -> None:
        self._path: pathlib.Path | None = None

    def begin(self, script_log: str) -> None:
        """`script_log`: a worker's, in the run directory; empty for `python train.py` alone."""
        if script_log:
            self._path = pathlib.Path(script_log).absolute().parent / "logs" / "waits.txt"

    def say(self, text: str) -> None:
        """`text`: a sentence. The caller writes to stderr what follows it there."""
        print(f"lockstep: {text}", file=sys.stderr, flush=True)
        if self._path is None:
            return
        line = f"pid {os.getpid()}: {' '.join(text.split())}; read on in {self._path.parent}\n"
        with contextlib.suppress(OSError):  # it is on stderr
            file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
            try:
                os.write(file, line.encode(errors="replace"))  # one call: other workers append, too
            finally:
                os.close(file)


WAITS = Waits()
