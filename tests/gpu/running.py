"""Runs programs with a time-out, and ends all that they have started: their process group, and
whoever left it but kept the mark in its environment."""
import contextlib
import dataclasses
import itertools
import os
import pathlib
import signal
import subprocess
import threading
import time

MARK = "LOCKSTEP_SUITE_PROCESS"
END_S = 10  # what it may take to end a program


@dataclasses.dataclass
class Ended:
    code: object  # as subprocess has it; None: the time-out ended it
    seconds: float
    text: str  # stdout and stderr

    def why(self):
        if self.code is None:
            return f"no end after {self.seconds:.0f} s"
        return f"signal {-self.code}" if self.code < 0 else f"exit {self.code}"


class Runner:
    """Thread-safe. After stop(), what runs is ended, and run() raises Stopped."""

    class Stopped(Exception):
        pass

    def __init__(self):
        self.stopped = threading.Event()
        self.numbers = itertools.count()

    def stop(self):
        self.stopped.set()

    def run(self, command, limit_s, log, env=None, cwd=None):
        """Ended. `log`: the file that the program writes to."""
        mark = f"{os.getpid()}.{next(self.numbers)}"
        begin = time.monotonic()
        with open(log, "wb") as out:
            try:
                process = subprocess.Popen([str(word) for word in command], stdout=out,
                                           stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                                           cwd=cwd, env={**os.environ, **(env or {}), MARK: mark},
                                           start_new_session=True)
            except OSError as problem:
                return Ended(127, 0.0, str(problem))
            try:
                code = self._wait(process, begin + limit_s)
            finally:
                end_all(process, mark)
        return Ended(code, time.monotonic() - begin, pathlib.Path(log).read_text(errors="replace"))

    def _wait(self, process, deadline):
        while not self.stopped.is_set():
            left = deadline - time.monotonic()
            if left <= 0:
                return None
            with contextlib.suppress(subprocess.TimeoutExpired):
                return process.wait(min(left, 0.2))
        raise self.Stopped


def marked(mark):
    """Pids of the living processes with this mark in their environment."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):  # another user's, or gone
                if os.fsencode(f"{MARK}={mark}") in (entry / "environ").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
    return found


def end_all(process, mark):
    """Ends the process, its group, and all with its mark; they may start others meanwhile. Gives up
    on what even the kernel cannot end, such as a process that waits for a device."""
    deadline = time.monotonic() + END_S
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(END_S)
    while (pids := marked(mark)) and time.monotonic() < deadline:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.01)
