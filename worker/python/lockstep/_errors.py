"""The errors that end a script, with their exit codes (deploy/TROUBLESHOOTING.md)."""
from __future__ import annotations

import contextlib
import errno
import traceback
from typing import Iterator

_MOST_OF_TRACE = 8192  # characters

USAGE, BAD_DATA, INTERNAL, STOPPED, CONFIG = 64, 65, 70, 75, 78


class LockstepError(Exception):
    """The process cannot go on; `code` is its exit code."""

    code = INTERNAL

    def __init__(self, text: str, code: int | None = None):
        super().__init__(text)
        if code is not None:
            self.code = code


class Misuse(LockstepError):
    """The script does something that would break a run's promises. Another attempt fails alike."""

    code = USAGE


class Stopped(SystemExit):
    """The run was asked to stop, and has written a checkpoint, from which `lockstep run --resume`
    goes on. `python train.py` alone leaves no checkpoint."""

    def __init__(self):
        super().__init__(STOPPED)


class Left(SystemExit):
    """The run goes on without this worker."""

    def __init__(self):
        super().__init__(0)


class Replayed(SystemExit):
    """The steps that `lockstep replay` asked for are computed again. 1: with other bits."""


_OF_LAUNCHER = ("RANK", "LOCAL_RANK", "NODE_RANK", "GROUP_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE",
                "MASTER_ADDR", "MASTER_PORT")


def hint_of(error: BaseException | None) -> str | None:
    """What to do about an error of a script that expects another launcher; None: it is no such error."""
    name = None
    if isinstance(error, KeyError) and error.args and error.args[0] in _OF_LAUNCHER:
        name = error.args[0]
    elif isinstance(error, ValueError) and "env:// rendezvous" in str(error):
        name = next((one for one in _OF_LAUNCHER if f"variable {one} " in str(error)), None)
    if name is None:
        return None
    return (f"{name} is for a process of torchrun, and the script needs no rank here: run.batches() gives "
            "each worker its part of every step, run.device is its device, and run.is_writer tells the "
            "one that may write files; leave init_process_group() and what depends on the rank out")


def text_of(error: object) -> bytes:
    """The text of an error as the core takes it, whatever characters a script put into it."""
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


def _is_of_device(error: Exception) -> bool:
    return any(words in str(error) for words in ("CUDA error", "cuDNN error", "CUBLAS_STATUS", "HIP error"))


@contextlib.contextmanager
def failing_alike(step: int) -> Iterator[None]:
    """Within, every worker computes the same, so an error would come again in a new worker, unless
    it is due to this machine. fails_alike() and detail_of() know such an error later."""
    try:
        yield
    except Exception as error:
        mark_alike(error, step)
        raise


def mark_alike(error: Exception, step: int) -> None:
    """Marks the error for fails_alike(), unless it is due to this machine."""
    if not is_of_machine(error) and not _is_of_device(error):
        with contextlib.suppress(AttributeError):
            error._lockstep_step = step  # type: ignore[attr-defined]


def fails_alike(error: BaseException | None) -> bool:
    return hasattr(error, "_lockstep_step")


def is_of_script(error: BaseException | None) -> bool:
    """Whether the script's own code raised it in the loop's body: not a part of Lockstep, a person, this
    machine or its device. Another slot of the step may raise the same (coordinator/decide/poison.cc)."""
    return isinstance(error, Exception) and not isinstance(error, LockstepError) and \
        not is_of_machine(error) and not _is_of_device(error)


def _trace_of(error: BaseException) -> str:
    begin = error.__traceback__
    while begin is not None and begin.tb_frame.f_globals.get("__name__") == "lockstep._script":
        begin = begin.tb_next  # what comes before the script's own lines
    trace = "".join(traceback.format_exception(type(error), error, begin))
    return f"\n{trace[-_MOST_OF_TRACE:].rstrip()}"


def detail_of(error: BaseException | None) -> str:
    """The words with which a run ends by an error that every worker raises alike, or that the
    script raised, with its traceback; else nothing."""
    if error is None:
        return ""
    if not fails_alike(error):
        return _trace_of(error) if is_of_script(error) else ""
    return (f", in step {error._lockstep_step}; every worker does the same in update=, "  # type: ignore
            "after_step=, optimizers, schedulers and between two epochs, so no other one would do "
            f"better: mend the script{_trace_of(error)}")
