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
    """The run was asked to stop, and has written a checkpoint. `lockstep run --resume` goes on."""

    def __init__(self):
        super().__init__(STOPPED)


class Left(SystemExit):
    """The run goes on without this worker."""

    def __init__(self):
        super().__init__(0)


def exit_code_of(error: BaseException) -> int:
    """The code that an error asks for; INTERNAL if it asks for none."""
    code = getattr(error, "code", None)
    return code if isinstance(code, int) and 0 < code < 128 else INTERNAL
