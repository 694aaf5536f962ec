"""signal: signals that come twice, together, or unexpectedly. stream: descriptors 0 to 2 that are
closed, full, or without a reader.
"""
import os
import signal
import subprocess
import time

from case import Case
from kills import MOMENTS, pids_of, send
from stage import Defect, contextlib, poll
from verdict import expect_next_step, judge

STOPS = {"TERM+INT": (signal.SIGTERM, signal.SIGINT), "HUP+INT": (signal.SIGHUP, signal.SIGINT),
         "TERM+TERM": (signal.SIGTERM, signal.SIGTERM), "USR1": (signal.SIGUSR1,),
         "USR1+TERM": (signal.SIGUSR1, signal.SIGTERM), "INT": (signal.SIGINT,),
         "HUP": (signal.SIGHUP,)}
STRANGE = ("SIGALRM", "SIGUSR2", "SIGPIPE", "SIGQUIT", "SIGXFSZ", "SIGVTALRM", "SIGABRT", "SIGSEGV",
           "SIGWINCH", "SIGTSTP")


def stopped_by(signals, moment, role="supervisor"):
    def on(stage):
        run = stage.start(workers=2)
        MOMENTS[moment](stage, run, role)
        pids = pids_of(run, role)
        send(pids, signal.SIGSTOP)  # so the process gets them together
        for each in signals:
            send(pids, each)
        send(pids, signal.SIGCONT)
        judge(stage, run, expect={0, 75} if role == "supervisor" else None)
    return on


def later_again(stage):
    """The second signal, over a second later, ends the run at once."""
    run = stage.start(workers=2)
    MOMENTS["middle"](stage, run, "")
    workers = pids_of(run, "workers")
    send(workers, signal.SIGSTOP)
    run.process.send_signal(signal.SIGTERM)
    time.sleep(1.3)
    run.process.send_signal(signal.SIGTERM)
    send(workers, signal.SIGCONT)
    judge(stage, run, expect={70, 75, 0})


def strange(number, role):
    def on(stage):
        run = stage.start(workers=2)
        MOMENTS["middle"](stage, run, role)
        send(pids_of(run, role), number)
        if number == signal.SIGTSTP:
            time.sleep(0.3)
            send(pids_of(run, role), signal.SIGCONT)
        run.was_killed = role == "supervisor"
        stage.may_abort = number in (signal.SIGSEGV, signal.SIGABRT)  # the run tells of it
        expect_next_step(stage, run)
        judge(stage, run)
    return on


def redirected(how):
    """A shell gives the run its descriptors."""
    def on(stage):
        run = stage.start(prefix=("sh", "-c", f'exec "$@" {how}', "sh"))
        run.process.wait(200)
        # If stderr cannot be read, only the exit code tells.
        if "2>" in how and run.process.returncode != 0:
            raise Defect(f"code {run.process.returncode}")
        judge(stage, run)
    return on


def nobody_reads(stage):
    """The reader of a pipe goes away."""
    run = stage.start(prefix=("sh", "-c", 'exec "$@" 2>&1 | head -n 1; sleep 1; exit 0', "sh"))
    run.process.wait(200)
    poll(lambda: (run.run_dir / "summary.json").exists(), "the run ended", pause_s=0.1)
    judge(stage, run)


REDIRECTIONS = {"stdin-closed": "<&-", "stdout-closed": ">&-", "stderr-closed": "2>&-",
                "all-closed": "<&- >&- 2>&-", "stdout-full": ">/dev/full",
                "stderr-full": "2>/dev/full", "both-full": ">/dev/full 2>/dev/full",
                "stdin-closed-stdout-full": "<&- >/dev/full"}


def cases():
    for name, signals in STOPS.items():
        for moment in ("join", "first-step", "checkpoint", "middle"):
            yield Case(f"signal/supervisor/{name}/{moment}", stopped_by(signals, moment))
    yield Case("signal/supervisor/TERM-and-later-TERM/middle", later_again)
    for role in ("agent", "coordinator", "workers"):
        yield Case(f"signal/{role}/TERM+INT/middle",
                   stopped_by(STOPS["TERM+INT"], "middle", role))
    for name in STRANGE:
        for role in ("worker", "coordinator", "agent", "supervisor"):
            yield Case(f"signal/{role}/{name}/middle", strange(getattr(signal, name), role))
    for name, how in REDIRECTIONS.items():
        yield Case(f"stream/run/{name}/start", redirected(how))
    yield Case("stream/run/nobody-reads/start", nobody_reads)
