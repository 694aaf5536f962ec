"""kill: one process of the run, or all of them, get a signal at a certain moment."""
import os
import signal
import time

from case import Case
from stage import LEASE_S, STEPS, Skip, contextlib, kill_at_once, log_events, poll, processes_of
from verdict import expect_next_step, judge, note_first_step

ROLES = ("worker", "workers", "coordinator", "agent", "supervisor", "everyone")


def pids_of(run, role):
    """Finds processes by their command lines, because one that has just begun serves nothing
    yet."""
    def are(name):
        return sorted(processes_of(run.run_dir, lambda words: name(words)))
    found = {
        "worker": lambda: are(lambda w: b"lockstep-worker" in w[0])[-1:],
        "workers": lambda: are(lambda w: b"lockstep-worker" in w[0]),
        "coordinator": lambda: are(lambda w: b"lockstep-coordinator" in w[0]),
        "agent": lambda: are(lambda w: w[1:2] == [b"agent"]),
        "supervisor": lambda: [run.process.pid],
        "everyone": lambda: are(lambda w: True)}
    return found[role]()


def worker_dies(run):
    os.kill(poll(lambda: pids_of(run, "worker"), "there was a worker", run)[0], signal.SIGKILL)


MOMENTS = {
    "birth": lambda stage, run, role: poll(lambda: pids_of(run, role), "it was there", run, pause_s=0),
    "join": lambda stage, run, role: poll(
        lambda: log_events(run.run_dir, "member_registered"), "a worker joined", run),
    "first-step": lambda stage, run, role: note_first_step(stage, run),
    "checkpoint": lambda stage, run, role: (
        note_first_step(stage, run),
        # On a busy machine the poll may see only the end of a checkpoint.
        poll(lambda: list((run.run_dir / "checkpoints").iterdir()), "a checkpoint began", run,
             pause_s=0)),
    "recovery": lambda stage, run, role: (
        note_first_step(stage, run), poll(lambda: run.steps() >= 50, "step 50", run),
        worker_dies(run),
        poll(lambda: log_events(run.run_dir, "member_died"), "it was missed", run)),
    "middle": lambda stage, run, role: (
        note_first_step(stage, run), poll(lambda: run.steps() >= 100, "step 100", run)),
    "end": lambda stage, run, role: (
        note_first_step(stage, run), poll(lambda: run.steps() >= STEPS - 4, "its end", run)),
}


def send(pids, number):
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def strike(run, role, how):
    pids = poll(lambda: pids_of(run, role), f"there was a {role}", run)
    if how == "kill":
        with contextlib.suppress(ProcessLookupError):
            kill_at_once(pids)
    elif how == "term":
        send(pids, signal.SIGTERM)
    else:
        send(pids, signal.SIGSTOP)
        time.sleep({"blink": LEASE_S * 0.3, "freeze": LEASE_S * 2.5}[how])
        send(pids, signal.SIGCONT)
    if role in ("supervisor", "everyone") and how in ("kill", "term"):
        run.was_killed = True


def play(role, how, moment, workers):
    def on(stage):
        run = stage.start(workers=workers)
        MOMENTS[moment](stage, run, role)
        strike(run, role, how)
        if not getattr(run, "was_killed", False):
            expect_next_step(stage, run)
        judge(stage, run)
    return on


def pair(first, second, workers):
    def on(stage):
        run = stage.start(workers=workers)
        MOMENTS["middle"](stage, run, first)
        kill_at_once(sorted({*pids_of(run, first), *pids_of(run, second)}))
        expect_next_step(stage, run)
        judge(stage, run)
    return on


def again_and_again(role, times):
    """Kills each time as soon as another process is there."""
    def on(stage):
        run = stage.start(workers=2)
        MOMENTS["middle"](stage, run, role)
        gone = set()
        for _ in range(times):
            pids = poll(lambda: set(pids_of(run, role)) - gone, f"there was another {role}", run)
            kill_at_once(pids)
            gone |= pids
        expect_next_step(stage, run)
        judge(stage, run)
    return on


def cases():
    for role in ROLES:
        for how in ("kill", "term", "blink", "freeze"):
            for moment in MOMENTS:
                if role in ("everyone", "supervisor") and how in ("blink", "freeze") and \
                        moment not in ("join", "checkpoint", "middle"):
                    continue  # a run that stands still as a whole notices nothing
                if role == "workers" and how in ("blink", "freeze") and moment in ("birth", "end"):
                    continue
                yield Case(f"kill/{role}/{how}/{moment}/2-workers", play(role, how, moment, 2))
    for role in ROLES:
        for moment, workers in (("middle", 1), ("checkpoint", 4), ("recovery", 4)):
            yield Case(f"kill/{role}/kill/{moment}/{workers}-workers",
                       play(role, "kill", moment, workers))
    for first, second in (("coordinator", "worker"), ("coordinator", "workers"),
                          ("coordinator", "agent"), ("agent", "worker")):
        yield Case(f"kill/{first}+{second}/kill/middle/3-workers", pair(first, second, 3))
    for role in ("worker", "coordinator", "agent"):
        yield Case(f"kill/{role}/kill-3-times/middle/2-workers", again_and_again(role, 3))
