"""Small jobs of other kinds than the suite's own, and the undisturbed run of each: a training loop in
Python, a table, tokens, a mixture, images, and data that a server has.
"""
import contextlib
import fcntl
import json
import os
import pathlib
import random
import shutil
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python" / "world"))
from script_runs import make_python, variables_of  # noqa: E402
from stage import HANG_S, SECTIONS, Defect, Skip, Started, harness, write_job  # noqa: E402
import image_files  # noqa: E402
from range_server import RangeServer  # noqa: E402

GPT2 = {"name": "gpt2", "n_layer": 1, "n_head": 2, "n_embd": 16, "block": 16}

SCRIPT_STEPS, SCRIPT_EVERY = 120, 10
# Its arguments: what stands still, and in which step or at which sample.
SCRIPT = f"""
# /// lockstep
# job: faults
# seed: 3
# train: {{global_batch: 8, slots: 4, max_steps: {SCRIPT_STEPS}}}
# checkpoint: {{every_steps: {SCRIPT_EVERY}, keep: 2}}
# cluster: {{lease_s: 1, grace_s: 10, max_crashes: 1000, max_preemptions: 1000, rebalance: false,
#            start_timeout_s: 120}}
# ///
import os, sys, time
import torch, lockstep
WRONG = sys.argv[1:]
SLOT_S = float(os.environ.get("FAULTS_SLOT_MS", "0")) / 1000
def is_due(what):
    return WRONG[:1] == [what] and not run.is_trial and run.step == int(WRONG[1])
def stand_still():
    time.sleep(1e6)
class Data(torch.utils.data.Dataset):
    def __len__(self): return 400
    def __getitem__(self, index):
        if WRONG == ["sample", str(index)]: stand_still()
        return torch.randn(4, generator=torch.Generator().manual_seed(index)) + torch.rand(4) / 9, index
run = lockstep.start()
model = torch.nn.Linear(4, 3)
optimizer = torch.optim.AdamW(model.parameters(), 1e-2)
def after_step():
    if is_due("after_step"): stand_still()
    run.log(after=run.step)
run.keep(model=model, optimizer=optimizer, after_step=after_step)
for x, indices in run.batches(Data(), workers=1):
    if is_due("body"): stand_still()
    if not run.is_trial: time.sleep(SLOT_S)
    loss = model(x).square().mean()
    run.log(loss=loss.item(), sample=indices[0].item())
    run.backward(loss)
"""


@contextlib.contextmanager
def made_once(world, name):
    """Yields True in the one process that has to make it."""
    with open(world.directory / f"{name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = world.directory / f"{name}.done"
        yield not done.exists()
        done.touch()


def script_environment(stage, slot_ms=0):
    if not harness.installed("models-python"):
        raise Skip("there is no Python with torch; run deploy/install_deps.sh")
    python = make_python(stage.scratch) if not (stage.scratch / "python-with-lockstep").exists() \
        else str(stage.scratch / "python-with-lockstep")
    return {**variables_of(python, stage.scratch), "FAULTS_SLOT_MS": str(slot_ms)}


def use_script(stage, *wrong):
    """The runs of this case train a loop in Python that does `wrong`. They are judged as all
    are."""
    world = stage.world
    script = world.directory / "train.py"
    with made_once(world, "script") as must_make:
        if must_make:
            script.write_text(SCRIPT)
            whole = Started([script, "--workers", 1], world.directory / "script",
                            {**os.environ, **script_environment(stage)})
            if whole.wait(HANG_S) != 0:
                raise Defect("the undisturbed run of the script failed:\n" + whole.text())
    stage.reference, stage.job = "script", script
    return [f"script.args={json.dumps([str(word) for word in wrong])}"] if wrong else []


def a_sample_of(stage, step):
    """A sample of the last slot that a worker computes in this step."""
    use_script(stage)
    rows = (stage.world.directory / "script" / "script_log.jsonl").read_text().splitlines()
    return json.loads(rows[step])["sample"]


def start_script(stage, *wrong, workers=2, slot_ms=0, env=None, overrides=()):
    words = use_script(stage, *wrong)
    return stage.start(*words, *overrides, workers=workers, slot_ms=0,
                       env={**script_environment(stage, slot_ms), **(env or {})})


def resume_script(stage):
    return stage.resume(env=script_environment(stage))


def check_script_log(run, steps=SCRIPT_STEPS):
    """The log has each step once, in order, with its values."""
    rows = [json.loads(line) for line in (run.run_dir / "script_log.jsonl").read_text().splitlines()]
    if [(row["step"], row.get("after")) for row in rows] != [(n, n) for n in range(1, steps + 1)]:
        raise Defect(f"script_log.jsonl has the steps {[row['step'] for row in rows]}")


def write_table(directory):
    """A CSV, which Lockstep reads where it lies."""
    rows = random.Random(1)
    with open(directory / "train.csv", "w") as table:
        table.write("a,b,c,label\n")
        for _ in range(2000):
            x = [rows.gauss(0, 1) for _ in range(3)]
            table.write(",".join(f"{v:.3f}" for v in x) + f",{int(x[0] * x[1] > 0)}\n")
    return {"data": {"train": {"path": str(directory)}}}


def write_tokens(directory, seed=1):
    """One stream of tokens."""
    rows = random.Random(seed)
    (directory / "train.bin").write_bytes(
        struct.pack("<40000H", *(rows.randrange(200) for _ in range(40000))))
    return {"model": GPT2, "data": {"train": {"path": str(directory)}}}


def write_mixture(directory):
    for name, seed in (("web", 1), ("books", 2)):
        (directory / name).mkdir()
        write_tokens(directory / name, seed)
    return {"model": GPT2, "data": {"train": {"path": str(directory / "web")}, "mix_weight": 3,
                                    "mix": [{"path": str(directory / "books"), "weight": 2}]}}


def write_images(directory):
    """JPEG and PNG files in directories of classes, for decoding and augmentation."""
    if not shutil.which("cjpeg"):
        raise Skip("cjpeg is not installed (Debian: libjpeg-turbo-progs)")
    image_files.write_images(directory, image_files.EACH, seed=1)
    return {"model": {"name": "cnn"},
            "data": {"train": {"path": str(directory)},
                     "transforms": ["random_resized_crop=16", "flip", "normalize"]}}


OTHER_JOBS = {"table": write_table, "tokens": write_tokens, "mixture": write_mixture,
              "images": write_images}


def use_other_job(stage, kind):
    """The runs of this case train a job of OTHER_JOBS."""
    world = stage.world
    job = world.directory / f"{kind}.json"
    with made_once(world, kind) as must_make:
        if must_make:
            data = world.directory / f"{kind}-data"
            data.mkdir()
            job.write_text(json.dumps({**SECTIONS, **OTHER_JOBS[kind](data)}))
            whole = Started([job, "--workers", 1], world.directory / kind)
            if whole.wait(HANG_S) != 0:
                raise Defect(f"the undisturbed run of {kind} failed:\n" + whole.text())
    stage.reference, stage.job = kind, job


def far_job(stage):
    """A server with the suite's own data, and a job that trains on them through a cache."""
    server = RangeServer(stage.world.directory / "far")
    server.__enter__()
    stage.cleanups.append(lambda: server.__exit__(None, None, None))
    return server, write_job(stage.scratch / "far.yaml", server.url,
                             data={"cache_dir": str(stage.scratch / "cache")})
