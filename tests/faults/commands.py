"""command: scale, drain and stop are ordered while processes die. An acknowledged order happens;
any other order is reported as not done.
"""
import os
import re
import signal
import subprocess
import time

from case import Case
from kills import MOMENTS, pids_of, send
from stage import BIN, LEASE_S, Defect, contextlib, kill_at_once, log_events, poll
from verdict import check_no_crash, expect_next_step, judge

REFUSALS = {3, 64, 66, 70, 75}  # not running, impossible, no run, trouble, still stopping


def words_of(order, run):
    if order == "drain-member":
        member = poll(lambda: run.status()["members"], "there were members", run)[-1]
        return member, ["drain", run.run_dir, "--member", member["id"]]
    name, _, number = order.partition("-")
    return None, [name, run.run_dir, *([number] if number else [])]


def kill(run, role):
    with contextlib.suppress(ProcessLookupError):
        kill_at_once(pids_of(run, role))


def stand_still(run, role):
    """Stops the role's processes. Returns a function that lets them go on."""
    pids = pids_of(run, role)
    send(pids, signal.SIGSTOP)
    return lambda: send(pids, signal.SIGCONT)


# Each returns a function (run, begin) -> the ended command. `begin()` starts the command.
def before(role):
    def around(run, begin):
        kill(run, role)
        return finish(begin())
    return around


def during(role, pause_s):
    def around(run, begin):
        command = begin()
        time.sleep(pause_s)
        kill(run, role)
        return finish(command)
    return around


def after(role):
    def around(run, begin):
        ended = finish(begin())
        kill(run, role)
        return ended
    return around


def frozen(role):
    def around(run, begin):
        go_on = stand_still(run, role)
        command = begin()
        time.sleep(1.5 * LEASE_S)
        go_on()
        return finish(command)
    return around


FAULTS = {"coordinator-killed-before": before("coordinator"),
          "coordinator-killed-in-10-ms": during("coordinator", 0.01),
          "coordinator-killed-in-40-ms": during("coordinator", 0.04),
          "coordinator-killed-after": after("coordinator"),
          "coordinator-frozen": frozen("coordinator"),
          "worker-killed-in-10-ms": during("worker", 0.01),
          "workers-killed-after": after("workers"),
          "agent-killed-after": after("agent"),
          "worker-frozen": frozen("worker")}


def finish(command):
    out, err = command.communicate(timeout=150)
    return command.returncode, out, err


def played(order, around):
    def on(stage):
        run = stage.start(workers=2, slot_ms=10)
        MOMENTS["first-step"](stage, run, "")
        poll(lambda: run.steps() >= 60, "step 60", run)
        member, words = words_of(order, run)
        started = len(log_events(run.run_dir, "generation_started"))

        def begin():
            return subprocess.Popen([BIN / "lockstep", *map(str, words)], text=True,
                                    stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        code, out, err = around(run, begin)
        stage.seen["ordered"] = code
        check_no_crash(run, out + err)
        if code == 0:
            check_happened(order, run, started, member)
        elif code not in REFUSALS or not err.strip():
            raise Defect(f"{order} ended with {code}, and says {err!r}")
        if not order.startswith("stop"):
            expect_next_step(stage, run)
        judge(stage, run)
    return on


def check_happened(order, run, started, member):
    if order == "stop":
        if run.wait() not in (0, 75):
            raise Defect(f"stop was acknowledged, and the run ended with {run.process.returncode}:"
                         + run.text()[-2000:])
        return
    last = {}

    def seen():
        status = run.status()
        if status.get("members") is not None:
            last.update(status)
        if order == "drain-member":
            return all(each["id"] != member["id"] for each in status["members"])
        number = int(order.split("-")[1])
        later = log_events(run.run_dir, "generation_started")[started:]
        return any(re.search(rf"with {number} workers?\b", each["message"]) for each in later)
    try:
        poll(seen, f"{order} happened", run, pause_s=0.05)
    except Defect:
        number = order.rpartition("-")[2]
        ended = run.ended() and run.process.returncode == 0
        told = re.search(rf"step \d+/\d+, .*\b{number} workers?, gen", run.text())
        if not (ended and number.isdigit() and (told or last.get("workers") == int(number))):
            raise


def cases():
    for order in ("scale-1", "scale-4", "drain-member", "stop"):
        for fault, around in FAULTS.items():
            yield Case(f"command/{order}/{fault}/middle", played(order, around))
