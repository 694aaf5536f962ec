"""end: weights change after the last comparison before the end of the run, as a faulty memory
module would change them. No run ends with code 0 and wrong bits.
"""
import json
import os
import platform

from case import Case
from stage import BIN, EVERY, SLOT_MS, STEPS, Defect, Skip, Started, checkpoints, harness, step_of
from verdict import HANG_S, judge, note_first_step

from bit_flipper import BitFlipper, flip_one_bit  # noqa: I001 stage makes it importable

# A frozen model's weights are the same in every checkpoint, so the flipper can find them in memory.
FROZEN = {"optimizer": {"name": "adamw", "lr": 1e-30}, "train": {"check_every": 10 * STEPS}}
LAST_CHECKPOINT = STEPS - EVERY  # the run compares weights there, and then at the end
FLIP_STEPS = EVERY // 2          # after it
DEADLINE_S = 60


def frozen(stage, **more):
    """The job of the case, and its undisturbed run."""
    if platform.machine() != "x86_64":
        raise Skip("breakpoints are written for x86-64")
    job = stage.write_job(**FROZEN, **more)
    whole = Started([job, "--workers", 1], stage.scratch / "whole", {**os.environ})
    if whole.wait(HANG_S) != 0:
        raise Defect("the undisturbed run failed:\n" + whole.text()[-2000:])
    stage.reference = str(stage.scratch / "whole")
    return BitFlipper(BIN / "lockstep-worker")


def started(stage, workers):
    run = stage.start(workers=workers, slot_ms=3 * SLOT_MS)  # looking for the weights takes time
    note_first_step(stage, run)
    run.wait_for_step(LAST_CHECKPOINT - EVERY + 5)
    return run


def expect_expelled(run, workers, rank):
    found = json.loads(harness.lockstep("audit", run.run_dir, "--json").stdout)
    if workers > 2 and [place["local_rank"] for place in found["expelled"]] != [rank]:
        raise Defect(f"the audit names {found['expelled']}, not the worker of rank {rank}")


def flipped(stage, workers, rank, **more):
    """A run in which a worker's weights change after the last comparison but the one at the end."""
    flipper = frozen(stage, **more)
    run = started(stage, workers)
    victim = run.worker(rank)
    flipper.at_check(victim, lambda: flip_one_bit(run, victim), DEADLINE_S, FLIP_STEPS)
    return run


def between_the_last_checks(workers, rank):
    """The comparison at the end finds the worker that differs, and the run goes back."""
    def on(stage):
        run = flipped(stage, workers, rank)
        stage.may_rewind = True  # to before the difference, and it says so
        judge(stage, run, expect={0})
        expect_expelled(run, workers, rank)
    return on


def in_fast(workers, rank):
    """The comparison at the end is of weights alone. A majority tells who is wrong; else the run goes
    back with all. It ends with the right weights. Its losses may round otherwise in another world."""
    def on(stage):
        run = flipped(stage, workers, rank, comm={"numerics": "fast"})
        code, text = run.wait(HANG_S), run.text()
        if code != 0 or "the run goes back" not in text:
            raise Defect(f"code {code}:\n" + text[-2000:])
        expect_expelled(run, workers, rank)
        whole = json.loads((stage.scratch / "whole/summary.json").read_text())
        if run.summary()["weights_sha256"] != whole["weights_sha256"]:
            raise Defect("other weights than an undisturbed run:\n" + text[-2000:])
    return on


def before_the_last_checkpoint(workers):
    """The last evaluation is over. The writer finds the flip, and its weights become no result."""
    def on(stage):
        flipper = frozen(stage)
        run = started(stage, workers)
        writer = run.worker(0)
        flipper.before_last_checkpoint(writer, lambda: flip_one_bit(run, writer), DEADLINE_S)
        code = run.wait(HANG_S)
        newest = max(map(step_of, checkpoints(run.run_dir)))
        if code != 70 or newest != LAST_CHECKPOINT:
            raise Defect(f"code {code}, and the newest checkpoint is of step {newest}:\n"
                         + run.text()[-2000:])
        judge(stage, run, expect={70})
    return on


def cases():
    for workers, rank in ((2, 0), (2, 1), (3, 0), (3, 2)):
        yield Case(f"end/weights-of-rank-{rank}/flip/before-the-last-step/{workers}-workers",
                   between_the_last_checks(workers, rank))
    for workers, rank in ((2, 0), (3, 1)):
        yield Case(f"end/weights-of-rank-{rank}/flip/before-the-last-step/{workers}-workers-fast",
                   in_fast(workers, rank))
    for workers in (1, 2, 3):
        yield Case(f"end/weights-of-writer/flip/before-the-last-checkpoint/{workers}-workers",
                   before_the_last_checkpoint(workers))
