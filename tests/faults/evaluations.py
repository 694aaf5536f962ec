"""evaluation: deaths around evaluations, in a run that train.patience ends and that keeps its best
checkpoint. It always ends at the same step with the same evaluations, and the best checkpoint is
there, or the run can make it again.
"""
import json
import os
import signal
import time

from case import Case
from damage import WAYS, remove, replace_by_file, replace_by_link
from disks import broken
from kills import pids_of
from stage import BIN, Defect, Skip, checkpoints, harness, poll, step_of
from verdict import expect_next_step, judge, note_first_step

MUTE = BIN.parent / "tests" / "liblockstep_mute.so"
MIDDLE, LAST_BUT_ONE, BEST = 50, 160, 144  # steps with an evaluation


def evaluated(run, step):
    """Whether evals.jsonl has the evaluation after this step, or a later one."""
    with open(run.run_dir / "evals.jsonl") as file:
        return any(json.loads(line)["step"] >= step for line in file)


def check_best(stage, run):
    """The best checkpoint is the undisturbed run's. A run can make one that died with its writer
    again."""
    right = harness.Run.summary(reference_run(stage))["best_checkpoint"]
    for number in range(2):
        found = run.summary().get("best_checkpoint", {})
        if found.get("weights_sha256") == right["weights_sha256"]:
            stage.seen["best made again"] = number
            if found["name"] not in checkpoints(run.run_dir):
                raise Defect(f"the best checkpoint, {found['name']}, is not there")
            return
        if found.get("step") == right["step"]:
            raise Defect(f"the best checkpoint has other weights: {found}, not {right}")
        if number == 0:
            stage.may_rewind = True  # as it was told to
            run = stage.resume("--from-checkpoint", "best")
            judge(stage, run, expect={0})
    raise Defect(f"the best checkpoint is {found}, not {right}")


def reference_run(stage):
    run = object.__new__(harness.Run)
    run.run_dir = stage.world.directory / stage.reference
    return run


def judge_all(stage, run):
    judge(stage, run)
    check_best(stage, run)


def after_evaluation(role, step, wait_ms, workers=3):
    """The next evaluation begins about 100 ms after this one."""
    def on(stage):
        stage.be_patient()
        run = stage.start(workers=workers)
        note_first_step(stage, run)
        writer = run.worker(0)  # asking lasts longer than the last steps
        poll(lambda: evaluated(run, step), f"the evaluation after step {step}", run)
        victims = [writer] if role == "writer" else pids_of(run, role)
        time.sleep(wait_ms / 1_000)  # the strike falls somewhere in the next stretch
        harness.kill_at_once(victims)
        run.was_killed = role in ("everyone", "supervisor")
        if not run.was_killed:
            expect_next_step(stage, run)
        judge_all(stage, run)
    return on


def before_its_report(step):
    """The writer evaluates, and its report does not arrive: it is mute, and then it dies."""
    def on(stage):
        if not MUTE.exists():
            raise Skip(f"there is no {MUTE}; build lockstep_mute")
        stage.be_patient(cluster={"lease_s": 120})  # which must not judge the mute writer
        muted = stage.scratch / "muted"
        run = stage.start(workers=3, env={"LD_PRELOAD": str(MUTE),
                                          "LOCKSTEP_TEST_MUTED": str(muted)})
        note_first_step(stage, run)
        poll(lambda: evaluated(run, step), f"the evaluation after step {step}", run)
        writer = run.worker(0)
        muted.with_suffix(".new").write_text(str(writer))
        muted.with_suffix(".new").rename(muted)
        others = lambda: [m for m in run.status()["members"] if m["rank"] > 0]  # noqa: E731
        if step == LAST_BUT_ONE:
            poll(lambda: all(m["state"] == "left" for m in others()), "the others were done", run)
        else:
            poll(lambda: min(m["step"] for m in others()) > step + 20, "the others went on", run)
        os.kill(writer, signal.SIGKILL)
        judge_all(stage, run)
    return on


def writes_checkpoint_of(step, call):
    """The writer dies in the write. The others may have trained on."""
    def on(stage):
        stage.be_patient()
        run = stage.start(workers=3, env=broken(stage, f"step-{step:010d}", call, "1", "die"))
        note_first_step(stage, run)
        judge_all(stage, run)
    return on


def best_is_damaged(file, way, live):
    """The run does not need it, and ends as it should. A user who resumes from it gets an error."""
    def on(stage):
        stage.be_patient()
        if live:
            run = stage.start(workers=2)
            note_first_step(stage, run)
            poll(lambda: evaluated(run, BEST) and step_of(checkpoints(run.run_dir)[-1]) >= BEST,
                 "its best checkpoint", run)
        else:
            stage.copy_of("patient-killed")
        names = [name for name in checkpoints(stage.run_dir) if step_of(name) == BEST]
        path = stage.run_dir / "checkpoints" / names[0] / file
        way(path)
        if not live:
            run = stage.resume()
        stage.may_rewind = True  # it may be the newest one
        judge(stage, run)
        if run.summary()["best_checkpoint"]["name"] != names[0]:
            return  # the run went back to before the newest one, and made it again
        asked = harness.lockstep("ckpt", "verify", run.run_dir)
        is_whole = asked.returncode == 0 and path.exists()
        run = stage.resume("--from-checkpoint", "best")
        code = run.wait()
        if is_whole:
            if code != 0:
                raise Defect(f"the best checkpoint is whole, and code {code}: " + run.text()[-2000:])
        elif code not in (65, 66, 70) or names[0] not in run.complaint():
            raise Defect(f"code {code} for a best checkpoint that is damaged: "
                         + run.text()[-2000:])
    return on


def cases():
    for role in ("writer", "worker", "workers", "coordinator", "everyone"):
        for step, where in ((MIDDLE, "middle"), (LAST_BUT_ONE, "before-its-end")):
            for wait_ms in (0, 70, 110, 130, 150):
                yield Case(f"evaluation/{role}/kill-after-{wait_ms}-ms/{where}",
                           after_evaluation(role, step, wait_ms))
    for step, where in ((MIDDLE, "middle"), (LAST_BUT_ONE, "its-end")):
        yield Case(f"evaluation/writer/mute-and-killed/{where}", before_its_report(step))
    for step, what in ((60, "one-of-the-best"), (BEST, "the-best"), (168, "the-last")):
        for call in ("make", "write", "sync", "name"):
            yield Case(f"evaluation/writer/dies-in-{call}/{what}",
                       writes_checkpoint_of(step, call))
    for live in (False, True):
        when = "live" if live else "at-rest"
        for file, ways in (("model.safetensors", ("flip-middle", "half", "deleted")),
                           ("manifest.json", ("flip-middle", "empty", "deleted"))):
            for way in ways:
                yield Case(f"evaluation/best-{file}/{way}/{when}",
                           best_is_damaged(file, WAYS[way], live))
        for name, way in (("deleted", remove), ("link", replace_by_link),
                          ("file", replace_by_file)):
            yield Case(f"evaluation/best/{name}/{when}", best_is_damaged("", way, live))
