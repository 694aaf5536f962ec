"""What ends a script, and with which exit code (deploy/TROUBLESHOOTING.md)."""
from __future__ import annotations

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


def text_of(error: object) -> bytes:
    """Of whatever somebody wrote, as the core takes it."""
    return str(error).encode(errors="replace")[:65536]


def exit_code_of(error: BaseException) -> int:
    """The code that an error asks for; INTERNAL if it asks for none."""
    code = getattr(error, "code", None)
    if isinstance(error, SystemExit) and code in (None, 0):
        return 0
    return code if isinstance(code, int) and 0 < code < 128 else INTERNAL
