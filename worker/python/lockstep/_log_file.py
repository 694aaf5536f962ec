"""script_log.jsonl in the run directory: one line for each applied step that logged something.

The writer of the run writes it. Where another process becomes the writer, it takes a copy without
the lines beyond its state, and puts the copy in the file's place: a writer before it that is not dead
after all goes on in a file that nobody sees.
"""
from __future__ import annotations

import contextlib
import os
import pathlib
from typing import BinaryIO, Iterator

_HEAD = b'{"step":'  # of every line


def _step_of(line: bytes) -> int | None:
    """None: no whole line of ours."""
    if not line.startswith(_HEAD) or not line.endswith(b"}\n"):
        return None
    digits = line[len(_HEAD):].split(b",", 1)[0]
    return int(digits) if digits.isdigit() else None


def _true_lines(file: BinaryIO, applied: int) -> Iterator[tuple[int, bytes]]:
    """The lines from the first on, up to one that is cut off, out of order, or beyond the state."""
    last = 0
    for line in file:
        step = _step_of(line)
        if step is None or not last < step <= applied:
            return
        last = step
        yield step, line


class LogFile:
    """The file, while this process is the writer. `last`: the step of its last line; 0: it has none.

    Raises OSError; what append() has not written whole is not in the file then.
    """

    def __init__(self, path: pathlib.Path, generation: int, applied: int):
        """`applied`: steps of the state that the run goes on from."""
        for left in path.parent.glob(f"{path.name}.tmp.*"):  # of writers that were killed
            left.unlink(missing_ok=True)
        self.last = 0
        copy = path.with_name(f"{path.name}.tmp.{generation}")
        self._file = open(copy, "xb", buffering=0)
        try:
            self._size = self._copy(path, applied)
            os.replace(copy, path)
        except OSError:
            self.close()
            with contextlib.suppress(OSError):
                copy.unlink()
            raise

    def _copy(self, path: pathlib.Path, applied: int) -> int:
        size = 0
        with contextlib.suppress(FileNotFoundError), open(path, "rb") as old, \
                open(self._file.fileno(), "wb", closefd=False) as out:
            for self.last, line in _true_lines(old, applied):
                out.write(line)
                size += len(line)
        return size

    def append(self, step: int, line: bytes) -> None:
        written = 0
        try:
            while written < len(line):
                written += self._file.write(line[written:])
        except OSError:
            with contextlib.suppress(OSError):
                self._file.seek(self._size)
                self._file.truncate()
            raise
        self._size += len(line)
        self.last = step

    def close(self) -> None:
        self._file.close()
