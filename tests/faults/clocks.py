"""clock: the wall clock of all processes is set, forth or back, while they run or between two runs.
The monotonic clock measures durations, so only dates may change.
"""
import datetime
import json
import os
import time

from case import Case
from kills import MOMENTS, strike
from stage import STEPS, Defect, harness, poll
from verdict import expect_next_step, judge

LIBRARY = harness.BIN.parent / "tests" / "liblockstep_wall_clock.so"
BY_S = {"back-a-minute": -60, "forth-a-minute": 60, "back-a-day": -86_400, "forth-a-day": 86_400,
        "back-30-years": -30 * 365 * 86_400, "forth-60-years": 60 * 365 * 86_400}


class Clock:
    """The clock of the processes of one case."""

    def __init__(self, stage, by_s=0):
        self.file = stage.scratch / "clock"
        self.env = {"LD_PRELOAD": str(LIBRARY), "LOCKSTEP_TEST_CLOCK": str(self.file)}
        self.set(by_s)

    def set(self, by_s):
        new = self.file.with_suffix(".new")
        new.write_text(str(by_s))
        os.replace(new, self.file)  # no process reads half a number


def check_times(run, begun, by_s):
    """Checks the run's times against a clock that was not set. Its dates are the wall clock's.
    """
    log = (run.run_dir / "logs" / "coordinator.log.jsonl").read_text().splitlines()
    told = datetime.datetime.fromisoformat(json.loads(log[-1])["ts"]).timestamp()
    if abs(told - time.time() - by_s) > 30:
        raise Defect(f"the clock was set by {by_s} s, and the run did not see it: {log[-1]}")
    lasted_s = time.monotonic() - begun
    summary = json.loads((run.run_dir / "summary.json").read_text())
    if not 0 < summary["wall_seconds"] <= lasted_s:
        raise Defect(f"wall_seconds is {summary['wall_seconds']}, and {lasted_s:.1f} s have passed")
    if not 0 <= summary["goodput"] <= 1:
        raise Defect(f"goodput is {summary['goodput']}")


def stepped(by_s, moment, strikes=None):
    def on(stage):
        clock, begun = Clock(stage), time.monotonic()
        run = stage.start(env=clock.env)
        MOMENTS[moment](stage, run, "worker")
        clock.set(by_s)
        if strikes:
            at = run.steps() + 20  # so that it has written something by its new clock
            poll(lambda: run.steps() >= at, f"step {at}", run)
            strike(run, strikes, "kill")
        expect_next_step(stage, run)
        judge(stage, run, expect={0})
        check_times(run, begun, by_s)
    return on


def resumed(by_s):
    """The machine that goes on has another time than the machine that began."""
    def on(stage):
        stage.copy_of("killed")
        judge(stage, stage.resume(env=Clock(stage, by_s).env), expect={0})
    return on


def to_and_fro(stage):
    """A clock that is set again and again."""
    clock, begun = Clock(stage), time.monotonic()
    run = stage.start(env=clock.env)
    for step in range(10, STEPS - 20, 10):
        poll(lambda at=step: run.steps() >= at, f"step {step}", run)
        by_s = (-1) ** (step // 10) * step * 1000
        clock.set(by_s)
    judge(stage, run, expect={0})
    check_times(run, begun, by_s)


def cases():
    for name, by_s in BY_S.items():
        for moment in ("join", "middle", "recovery"):
            yield Case(f"clock/all/{name}/{moment}", stepped(by_s, moment))
        yield Case(f"clock/all/{name}/take-over", stepped(by_s, "middle", "coordinator"))
        yield Case(f"clock/all/{name}/resume", resumed(by_s))
    yield Case("clock/all/to-and-fro/middle", to_and_fro)
