"""absence: the coordinator stands still for long, and the workers train on: in runs of every kind
of job, until their records are in files, for a minute, and for ten minutes at night. When it comes
back, no step is lost: the same generation goes on. The same holds if each new coordinator stands
still, too.
"""
import os
import signal
import time

from case import Case
from jobs import OTHER_JOBS, SCRIPT_STEPS, check_script_log, far_job, start_script, use_other_job
from kills import pids_of, send
from stage import STEPS, Defect, Skip, log_events, poll
from verdict import expect_next_step, judge, note_first_step

NIGHT = "LOCKSTEP_FAULTS_NIGHT"  # set: plays cases of many minutes, too
GOES_ON_S = 60  # the run lasts so much longer than an absence of a minute or ten


def start_arrays(stage, step_ms):
    return stage.start(slot_ms=step_ms / 2)  # two workers with two slots each


def starts_other(kind):
    def start(stage, step_ms):
        use_other_job(stage, kind)
        return stage.start(slot_ms=step_ms / 2)
    return start


def start_from_server(stage, step_ms):
    return stage.start(job=far_job(stage)[1], slot_ms=step_ms / 2)


def start_loop(stage, step_ms):
    return start_script(stage, slot_ms=step_ms / 2)


KINDS = {"arrays": (start_arrays, STEPS), "server": (start_from_server, STEPS),
         "script": (start_loop, SCRIPT_STEPS),
         **{kind: (starts_other(kind), STEPS) for kind in OTHER_JOBS}}


def stand_still(run, is_over, timeout_s=60):
    """Stops the coordinator, and the processes that would start another one."""
    pids = [pid for role in ("supervisor", "agent", "coordinator") for pid in pids_of(run, role)]
    send(pids, signal.SIGSTOP)
    try:
        poll(is_over, "it had been away for long enough", timeout_s=timeout_s, pause_s=0.05)
    finally:
        send(reversed(pids), signal.SIGCONT)


def check_one_generation(run):
    starts = log_events(run.run_dir, "generation_started")
    if len(starts) != 1:
        raise Defect(f"steps were lost: {len(starts)} generations")


def away(kind, seconds):
    def on(stage):
        if seconds >= 600 and NIGHT not in os.environ:
            raise Skip(f"it takes {seconds} s; set {NIGHT}")
        start, steps = KINDS[kind]
        # Without `seconds` a step is a batch of records. Else the run outlasts the absence, and
        # ends within HANG_S after it.
        run = start(stage, step_ms=1000 * (seconds + GOES_ON_S) / steps if seconds else 250)
        note_first_step(stage, run)
        until = time.monotonic() + seconds
        if seconds == 0:
            stand_still(run, lambda: list((run.run_dir / "cache").glob("records-*")))
        else:
            stand_still(run, lambda: time.monotonic() > until, 2 * seconds)
        expect_next_step(stage, run)
        judge(stage, run, expect={0})
        check_one_generation(run)
        if kind == "script":
            check_script_log(run)
    return on


def stop_new_ones(run, count):
    """Stops each coordinator that the supervisor or an agent starts after half a minute, until
    `count` of them stand still. Then all go on at once: some between their look for a newer claim
    and their commit."""
    stopped = []

    def enough():
        for pid in set(pids_of(run, "coordinator")) - set(stopped):
            send([pid], signal.SIGSTOP)
            stopped.append(pid)
        return len(stopped) >= count
    try:
        poll(enough, f"{count} coordinators were started", run, timeout_s=60 * count, pause_s=0.01)
    finally:
        send(stopped, signal.SIGCONT)


def one_after_another(kind, count=3):
    def on(stage):
        start, steps = KINDS[kind]
        run = start(stage, step_ms=1000 * 30 * count / (0.75 * steps))
        note_first_step(stage, run)
        stop_new_ones(run, count)
        expect_next_step(stage, run)
        judge(stage, run, expect={0})
        check_one_generation(run)
    return on


def cases():
    for kind in KINDS:
        yield Case(f"absence/coordinator/until-records-are-in-files/{kind}", away(kind, 0))
        yield Case(f"absence/coordinator/60-s/{kind}", away(kind, 60))
        yield Case(f"absence/coordinator/600-s/{kind}", away(kind, 600), limit_s=1800)
    yield Case("absence/coordinators-one-after-another/table", one_after_another("table"))
