"""hang: workers live and make no progress, all of them or the only one. After the first hang the
run replaces them and goes on. After a second hang in the same step it ends, names the step and the
samples in hand, and shows where each process stands.
"""
import os
import signal

from case import Case
from jobs import SCRIPT_EVERY, a_sample_of, check_script_log, start_script
from stage import Defect, contextlib, log_events, poll, processes_of
from verdict import check_no_rewind, check_same_bits, expect_next_step, judge, note_first_step, \
    wait_for_end

HANG_AT = SCRIPT_EVERY * 2 + 3
SOON = ("cluster.hang_s=2",)


def ends_twice_hung(code, workers, wrong, names):
    """`names`: what the end must say, besides the step."""
    def on(stage):
        place = {"body": HANG_AT, "after_step": HANG_AT + 1,  # run.step counts the one in work
                 "sample": a_sample_of(stage, HANG_AT)}[wrong]
        run = start_script(stage, wrong, place, workers=workers, overrides=SOON)
        ended = wait_for_end(run)
        if ended != code:
            raise Defect(f"code {ended}, not {code}:\n" + run.text()[-3000:])
        told = run.complaint() + run.text()
        for name in ("hung", "stands at", *names):
            if name not in told:
                raise Defect(f"the end does not say {name!r}:\n" + told[-4000:])
        incidents = {event["message"].split(":")[0] for event in
                     log_events(run.run_dir, "member_died") if " hang" in event["message"]}
        if not 1 <= len(incidents) <= 2 * workers:
            raise Defect(f"they hung {len(incidents)} times: {incidents}")
        check_no_rewind(stage, run)
    return on


def data_process_of(run):
    """A data process of a worker. Its name is set when it begins."""
    for pid in processes_of(run.run_dir):
        with contextlib.suppress(OSError), open(f"/proc/{pid}/comm") as name:
            if name.read().strip() == "lockstep-data":
                return pid
    return None


def data_process_stops(workers):
    def on(stage):
        run = start_script(stage, workers=workers, slot_ms=20, overrides=SOON)
        note_first_step(stage, run)
        poll(lambda: run.steps() >= SCRIPT_EVERY + 3, "a checkpoint was there", run)
        os.kill(poll(lambda: data_process_of(run), "there was a data process", run), signal.SIGSTOP)
        expect_next_step(stage, run)
        judge(stage, run, expect={0})
        check_same_bits(stage, run)
        check_script_log(run)
    return on


def cases():
    step = f"step {HANG_AT + 1}"
    for workers in (1, 2):
        yield Case(f"hang/script/body/every-time/{workers}-workers",
                   ends_twice_hung(65, workers, "body", (step, "positions", "train.py")))
        yield Case(f"hang/script/after_step/every-time/{workers}-workers",
                   ends_twice_hung(70, workers, "after_step", (step, "train.py", "in after_step")))
        yield Case(f"hang/script/data-process/stops/{workers}-workers", data_process_stops(workers))
    yield Case("hang/script/data-process/deadlocks-every-time/1-workers",
               ends_twice_hung(65, 1, "sample",
                               (step, "positions", "lockstep-data", "in __getitem__")))
