"""What ends a script, and with which exit code (deploy/TROUBLESHOOTING.md)."""
from __future__ import annotations

import errno

USAGE, BAD_DATA, INTERNAL, STOPPED, CONFIG = 64, 65, 70, 75, 78


class LockstepError(Exception):
    """Something cannot go on; `code` is the exit code of the process."""

    code = INTERNAL

    def __init__(self, text: str, code: int | None = None):
        super().__init__(text)
        if code is not None:
            self.code = code


class Misuse(LockstepError):
    """The script does what a run cannot keep its promises with. Another attempt fails alike."""

    code = USAGE


class Stopped(SystemExit):
    """The run was asked to stop, and has written a checkpoint, from which `lockstep run --resume`
    goes on. Of `python train.py` alone nothing is left."""

    def __init__(self):
        super().__init__(STOPPED)


class Left(SystemExit):
    """The run goes on without this worker."""

    def __init__(self):
        super().__init__(0)


class Replayed(SystemExit):
    """The steps that `lockstep replay` asked for are computed again. 1: with other bits."""


def text_of(error: object) -> bytes:
    """Of whatever somebody wrote, as the core takes it."""
    return str(error).encode(errors="replace")[:65536]


def exit_code_of(error: BaseException) -> int:
    """The code that an error asks for; INTERNAL if it asks for none."""
    code = getattr(error, "code", None)
    if isinstance(error, SystemExit) and code in (None, 0):
        return 0
    return code if isinstance(code, int) and 0 < code < 128 else INTERNAL


_OF_MACHINE = frozenset({
    errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.ENOSPC, errno.EDQUOT, errno.EIO,
    errno.EREMOTEIO, errno.ESTALE, errno.ENOBUFS, errno.ETIMEDOUT, errno.ENETDOWN,
    errno.ENETUNREACH, errno.EHOSTDOWN, errno.EHOSTUNREACH})
# Libraries say these without a number.
_SAID_OF_MACHINE = ("can't allocate memory", "cannot allocate memory", "not enough memory",
                    "out of memory", "failed to map segment", "can't start new thread",
                    "resource temporarily unavailable", "temporary failure in name resolution")


def is_of_machine(error: BaseException | None) -> bool:
    """Whether memory, processes, files or the network ran short, so that another attempt may do."""
    while error is not None:
        if isinstance(error, (MemoryError, ConnectionError, TimeoutError)):
            return True
        if isinstance(error, OSError) and error.errno in _OF_MACHINE:
            return True
        if isinstance(error, (OSError, ImportError, RuntimeError)):
            text = str(error).lower()
            if any(words in text for words in _SAID_OF_MACHINE):
                return True
        error = error.__cause__
    return False
