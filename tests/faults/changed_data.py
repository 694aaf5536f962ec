"""changed: a data file is written to and gets its old size and time again, as `touch -r`, `cp -p`
and `rsync --times` leave it; or something happens to it that changes no byte. The cases cover every
kind of data that Lockstep reads in its own way.
"""
import os
import shutil
import struct

import shard_files
import small_data
from case import Case
from jobs import made_once, resume_script, script_environment
from stage import HANG_S, PATIENT, Defect, Started, checkpoints, poll, write_job
from verdict import judge, note_first_step

STEPS = 60  # of the run, before the fault
SMALL = {"train": {"global_batch": 16, "slots": 4, "max_steps": 120}}
GPT = {"name": "gpt2", "n_layer": 1, "n_head": 2, "n_embd": 32, "block": 8, "dropout": 0}
SCRIPT = """
# /// lockstep
# job: faults
# data: {train: {path: %s}}
# train: {global_batch: 16, slots: 4, max_steps: 120}
# checkpoint: {every_steps: 20, keep: 2}
# cluster: {lease_s: 1, grace_s: 10, max_crashes: 1000, max_preemptions: 1000, rebalance: false,
#            start_timeout_s: 120}
# ///
import os, time
import torch, lockstep
run = lockstep.start()
model = torch.nn.Linear(432, 4)
run.keep(model=model, optimizer=torch.optim.SGD(model.parameters(), 1e-3))
for x, y in run.batches():
    if not run.is_trial: time.sleep(float(os.environ.get("FAULTS_SLOT_MS", "0")) / 1000)
    run.backward(torch.nn.functional.cross_entropy(model(x.flatten(1)), y))
"""


def in_the_middle(content):
    return len(content) // 2


def in_pixels(content):
    """A byte of the first image."""
    return content.index(b"BM") + 90


def bmp(side, colour):
    """An image without a checksum, so another byte is another pixel."""
    pixels = bytes(colour) * side * side  # rows end at a multiple of 4
    return (struct.pack("<2sIHHI", b"BM", 54 + len(pixels), 0, 0, 54)
            + struct.pack("<IiiHHIIiiII", 40, side, side, 1, 24, 0, len(pixels), 0, 0, 0, 0) + pixels)


def pictures(split):
    count = {"train": 60, "val": 20}[split]
    return [(f"{i:03d}.bmp", i % 3, bmp(20, (i, 4 * i, 255 - i))) for i in range(count)]


def write_folder(directory):
    for split in ("train", "val"):
        for name, label, content in pictures(split):
            path = directory / split / "abc"[label] / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)


def write_shards(directory):
    for split in ("train", "val"):
        shard_files.tar(directory / f"{split}-000.tar", pictures(split))


# By kind: what writes the data, the file that changes, the place in it, what else the job says, and
# whether a worker reads the file only at its start.
KINDS = {"npy": (small_data.arrays, "train_images.npy", in_the_middle, {}, False),
         "npz": (small_data.archive, "shapes.npz", in_the_middle, {}, True),
         "table": (small_data.tables, "train.csv", lambda content: content.rindex(b".") + 1, {}, True),
         "text": (small_data.texts, "train-a.txt", in_the_middle, {"model": GPT}, False),
         "tokens": (small_data.bare_tokens, "train.bin", in_the_middle, {"model": GPT}, False),
         "folder": (write_folder, "train/b/007.bmp", in_pixels, {}, False),
         "shard": (write_shards, "train-000.tar", in_pixels, {}, False)}


def whole_once(stage, name, start):
    """The undisturbed run of this kind, which `start(run_dir)` starts."""
    with made_once(stage.world, name) as must_make:
        if must_make:
            whole = start(stage.world.directory / name)
            if whole.wait(HANG_S) != 0:
                raise Defect(f"the undisturbed run of {name} failed:\n" + whole.text())
    stage.reference = name


def copied(stage, source):
    """A copy of the data for this case, so that the others see no change."""
    data = stage.scratch / "data"
    shutil.copytree(source, data)
    return data


def own_data(stage, kind):
    """The file that changes, and the place in it."""
    if kind in ("images", "labels"):
        data = copied(stage, stage.world.data)
        stage.job = write_job(stage.scratch / "job.yaml", data)
        return next(path for path in sorted(data.iterdir()) if f"train-{kind}" in path.name), \
            in_the_middle
    if kind == "evaluation":
        data = copied(stage, stage.world.directory / "patient-data")
        stage.reference = "patient"
        stage.job = write_job(stage.scratch / "job.yaml", data, **PATIENT)
        return next(path for path in sorted(data.iterdir()) if "t10k-images" in path.name), \
            in_the_middle
    write, victim, place, sections, _ = KINDS["npy" if kind == "script" else kind]
    original = stage.world.directory / f"{kind}-data"

    def start(run_dir):
        original.mkdir()
        write(original)
        if kind != "script":
            job = write_job(stage.world.directory / f"{kind}.json", original, **SMALL, **sections)
            return Started([job, "--workers", 1], run_dir)
        script = stage.world.directory / "batches.py"
        script.write_text(SCRIPT % original)
        return Started([script, "--workers", 1], run_dir,
                       {**os.environ, **script_environment(stage)})
    whole_once(stage, f"changed-{kind}", start)
    data = copied(stage, original)
    if kind == "script":
        stage.may_abort = True  # with Python's own traceback
        stage.job = stage.scratch / "batches.py"
        stage.job.write_text(SCRIPT % data)
    else:
        stage.job = write_job(stage.scratch / "job.yaml", data, **SMALL, **sections)
    return data / victim, place


def rewrite(path, at):
    """Writes another byte, and keeps size and time. Returns a function that puts the old one
    back."""
    before = path.stat()
    old = path.read_bytes()[at:at + 1]

    def write(byte):
        with open(path, "r+b") as file:
            file.seek(at)
            file.write(byte)
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    write(bytes([old[0] ^ 1]))
    return lambda: write(old)


def started(stage, kind, when):
    slow = {"env": script_environment(stage, 5), "slot_ms": 0} if kind == "script" else {}
    run = stage.start(workers=2, **slow)
    note_first_step(stage, run)
    if when == "middle":
        poll(lambda: checkpoints(run.run_dir) and run.steps() >= STEPS, f"step {STEPS}", run)
    return run


def again_as(stage, kind):
    return (lambda: resume_script(stage)) if kind == "script" else None


def under_the_run(kind, when, at_end=False):
    """No step uses the changed byte: the run ends, and goes on when the old content is back. Data
    that a worker keeps since its start do not change."""
    def on(stage):
        path, place = own_data(stage, kind)
        run = started(stage, kind, when)
        mend = rewrite(path, path.stat().st_size - 1 if at_end else place(path.read_bytes()))
        is_kept = kind in KINDS and KINDS[kind][-1]
        judge(stage, run, names=[path], mend=mend, expect={0} if is_kept else {65},
              again=again_as(stage, kind))
    return on


def before_the_resume(kind):
    """The resume compares the content, also where the cache has an index or a copy of it."""
    def on(stage):
        path, place = own_data(stage, kind)
        run = started(stage, kind, "middle")
        run.process.terminate()
        run.wait()
        back = rewrite(path, place(path.read_bytes()))
        run = again_as(stage, kind)() if kind == "script" else stage.resume()
        # The cache has what the archive's checksum promises, so nothing reads the damaged bytes.
        judge(stage, run, names=["fingerprint", path], mend=back,
              expect={0} if kind == "npz" else {64, 65}, again=again_as(stage, kind))
    return on


def harmless(kind, do):
    def on(stage):
        path, _ = own_data(stage, kind)
        run = started(stage, kind, "middle")
        do(path)
        judge(stage, run, expect={0})
    return on


def replace(path):
    """Puts another file in its place. A process that has the old one open reads on there."""
    other = path.with_name("other")
    other.write_bytes(bytes(path.stat().st_size))
    other.rename(path)


def link_for_a_while(path):
    backup = path.parent.parent / "backup"
    os.link(path, backup)
    backup.unlink()


def rename_and_back(path):
    away = path.parent.parent / "away"
    path.rename(away)
    away.rename(path)


def put_time_back(path):
    before = path.stat()
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


TOUCHES = {"rights": lambda path: path.chmod(0o640),
           "same-rights": lambda path: path.chmod(path.stat().st_mode & 0o777),
           "link": lambda path: os.link(path, path.parent.parent / "backup"),
           "link-for-a-while": link_for_a_while,
           "time-put-back": put_time_back}
HARMLESS = {"images": {**TOUCHES, "rename-and-back": rename_and_back,
                       "removed": lambda path: path.unlink(), "replaced": replace},
            "folder": TOUCHES, "shard": {**TOUCHES, "rename-and-back": rename_and_back}}


def cases():
    for kind in ("images", "labels", *KINDS, "evaluation", "script"):
        yield Case(f"changed/{kind}/rewritten/middle", under_the_run(kind, "middle"))
        if kind != "evaluation":
            yield Case(f"changed/{kind}/rewritten/at-rest", before_the_resume(kind))
    for kind in ("images", "labels", "folder"):
        yield Case(f"changed/{kind}/rewritten/first-step", under_the_run(kind, "first-step"))
    yield Case("changed/images/last-byte-rewritten/middle", under_the_run("images", "middle", True))
    for kind, touches in HARMLESS.items():
        for name, do in touches.items():
            yield Case(f"changed/{kind}/{name}/middle", harmless(kind, do))
