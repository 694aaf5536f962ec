"""script_log.jsonl in the run directory: one line for each applied step that logged something.

    line := {"step":N,...values...,"crc":"HHHHHHHH"}      CRC-32 of all before ,"crc" in hexadecimal
            {"step":N,"edge":true,...                     what was logged between two epochs, after step N

The run's writer writes it. A process that becomes the writer makes a copy without the lines beyond
its state and puts the copy in the file's place. A former writer that is not dead after all goes on
in the old file, which no longer has a name.

INVARIANTS
 F1 A damaged line costs that line alone. script_log.jsonl.damaged keeps it, and a message names it.
 F2 A file of an older version has no checks: all its lines are taken, and the copy gives them
    checks. Where one line has a valid check, a line without one is damaged.
 F3 Lines written before sync() returned survive a power cut, and so does a copy that replaces the
    file.
"""
from __future__ import annotations

import contextlib
import os
import pathlib
import zlib
from typing import Container, Iterator, Tuple

Place = Tuple[int, bool]  # a step, and whether it is the code between two epochs that follows it
_EDGE = b',"edge":true'  # no value is true: log() takes numbers and texts
_HEAD = b'{"step":'  # of every line
_CHECK = b',"crc":"'
CHECK_NAME = "crc"   # so no value has this name


def with_check(text: bytes) -> bytes:
    """A line of the file. `text`: an object in JSON, without spaces after its last brace."""
    body = text[:-1]
    return b'%s%s%08x"}\n' % (body, _CHECK, zlib.crc32(body))


def _body_of(line: bytes) -> bytes | None:
    """The part of a line before its check, if the check is valid; else None. A lost newline does
    not matter."""
    body = line[:line.rfind(_CHECK)]
    whole = line if line.endswith(b"\n") else line + b"\n"
    return body if with_check(body + b"}") == whole else None


def _place_of(text: bytes) -> Place | None:
    """None: the text is neither a line of ours nor the beginning of one."""
    if not text.startswith(_HEAD):
        return None
    digits = text[len(_HEAD):].split(b",", 1)[0]
    if not digits.isdigit():
        return None
    return int(digits), text.startswith(_EDGE, len(_HEAD) + len(digits))


class _Lines:
    """The lines of a file, checked. `damaged`: the lines that are not ours, unchanged."""

    def __init__(self, path: pathlib.Path):
        self._path = path
        self.damaged: list[bytes] = []
        self.torn: Place | None = None  # of the last line, if its writer died in it
        with open(path, "rb") as file:
            self._is_older = all(_body_of(line) is None for line in file)

    def until(self, applied: Place) -> Iterator[tuple[Place, bytes]]:
        """Each good line up to this place."""
        last = (0, False)
        with open(self._path, "rb") as file:
            for line in file:
                body = self._good_body(line)
                place = None if body is None else _place_of(body)
                if place is not None and last < place <= applied:
                    last = place
                    yield place, with_check(body + b"}")
                elif place is None and not line.endswith(b"\n"):
                    self._is_torn(line, applied)
                elif place is None or place <= applied:
                    self.damaged.append(line)

    def _good_body(self, line: bytes) -> bytes | None:
        if not self._is_older:
            return _body_of(line)
        return line[:-2] if line.endswith(b"}\n") else None

    def _is_torn(self, line: bytes, applied: Place) -> None:
        place = _place_of(line)
        if place is not None and place <= applied:
            self.torn = place
            self.damaged.append(line)


class LogFile:
    """The file, while this process is the writer. `last`: the place of its last line.
    `damaged`: how many lines were not whole.

    Raises OSError; the file then has nothing of a line that append() could not write whole.
    """

    def __init__(self, path: pathlib.Path, generation: int, applied: Place,
                 held: Container[Place] = ()):
        """`applied`: the last place that the run's state includes. `held`: the lines to append
        next, so a line in which a former writer died is no loss."""
        for left in path.parent.glob(f"{path.name}.tmp.*"):  # of writers that were killed
            left.unlink(missing_ok=True)
        self.last: Place = (0, False)
        self.damaged = 0
        copy = path.with_name(f"{path.name}.tmp.{generation}")
        self._file = open(copy, "xb", buffering=0)
        try:
            self._size = self._copy(path, applied, held)
            self.sync()
            os.replace(copy, path)
            _sync_directory(path.parent)
        except OSError:
            self.close()
            with contextlib.suppress(OSError):
                copy.unlink()
            raise

    def _copy(self, path: pathlib.Path, applied: Place, held: Container[Place]) -> int:
        try:
            lines = _Lines(path)
        except FileNotFoundError:
            return 0
        size = 0
        with open(self._file.fileno(), "wb", closefd=False) as out:
            for self.last, line in lines.until(applied):
                out.write(line)
                size += len(line)
        if lines.torn in held:
            lines.damaged.pop()
        if lines.damaged:
            _keep(damaged_path(path), lines.damaged)
        self.damaged = len(lines.damaged)
        return size

    def append(self, place: Place, line: bytes) -> None:
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
        self.last = place

    def sync(self) -> None:
        os.fsync(self._file.fileno())

    def close(self) -> None:
        self._file.close()


def damaged_path(path: pathlib.Path) -> pathlib.Path:
    return path.with_name(f"{path.name}.damaged")


def _keep(path: pathlib.Path, lines: list[bytes]) -> None:
    with open(path, "ab") as file:
        file.writelines(line if line.endswith(b"\n") else line + b"\n" for line in lines)
        file.flush()
        os.fsync(file.fileno())


def _sync_directory(path: pathlib.Path) -> None:
    directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
