"""Jobs with one planted bottleneck each, for `lockstep doctor`: how to make them and to ask about
them.

Each bottleneck is strong enough that other work of the machine cannot hide it. The planted stage is
slower than the trainer, or the trainer slower than the loader, by ten times and more.
"""
import contextlib
import errno
import json
import os
import pathlib
import random
import struct
import subprocess
import zlib

from harness import BIN, DEADLINE_S, synthetic_dataset

DOCTOR_S = 4
DEBIANS_PYTHON = "/usr/bin/python3"  # which has python3-fusepy, whichever one runs the tests
SIDE = 16  # of the small images
CLASSES = ("apple", "pear", "plum")


def png(width, height, colours):
    """An image of this many pixels. All rows equal its first one."""
    def chunk(kind, content):
        return (struct.pack(">I", len(content)) + kind + content
                + struct.pack(">I", zlib.crc32(kind + content)))
    rows = (b"\0" + colours[:3 * width]) * height
    return (b"\x89PNG\r\n\x1a\n"
            + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
            + chunk(b"IDAT", zlib.compress(rows, 1)) + chunk(b"IEND", b""))


def image_folder(directory, each, side, seed=3):
    """A directory of PNG files for each class. The images of a class are alike."""
    rng = random.Random(seed)
    for label, name in enumerate(CLASSES):
        (directory / name).mkdir(parents=True, exist_ok=True)
        row = bytes(min(255, 70 * label + rng.randrange(60)) for _ in range(3 * side))
        content = png(side, side, row)
        for i in range(each):
            (directory / name / f"{i:03d}.png").write_bytes(content)
    return directory


class CannotMount(OSError):
    """The error of a container that may open /dev/fuse and not mount."""


class Mount:
    """A directory seen through FUSE, by this script, with more arguments of its own."""

    def __init__(self, directory, mount_point, *args, script="mounted_files.py"):
        mount_point.mkdir()
        self.mount_point = mount_point
        script = pathlib.Path(__file__).with_name(script)
        self.process = subprocess.Popen(
            [DEBIANS_PYTHON, script, directory, mount_point, *map(str, args)], stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
        if self.process.stdout.readline() != "mounted\n":
            self.process.wait()
            raise CannotMount(errno.ENODEV, self.process.stderr.read())

    def close(self):
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            subprocess.run(["fusermount", "-u", "-z", self.mount_point], timeout=DEADLINE_S, check=False,
                           stderr=subprocess.DEVNULL)
        self.process.kill()
        self.process.communicate()


class SlowMount(Mount):
    """Every read takes its time, one after another."""

    def __init__(self, directory, mount_point, read_s):
        super().__init__(directory, mount_point, read_s, script="slow_files.py")


def why_no_fuse():
    """Why this machine cannot mount a file system in user space, as a sentence; else nothing."""
    tried = subprocess.run([DEBIANS_PYTHON, "-c", "import fusepy"], capture_output=True, text=True,
                           check=False)
    if tried.returncode != 0:
        return tried.stderr.strip().splitlines()[-1] + " (Debian: python3-fusepy fuse3)"
    try:
        os.close(os.open("/dev/fuse", os.O_RDWR))
    except OSError as error:
        return f"/dev/fuse: {error}"
    return ""


def job(path, data, *, model="mlp", batch, transforms=("normalize",), prefetch_batches=4,
        optimizer=None):
    described = {"model": {"name": model},
                 "data": {"train": {"path": str(data)}, "transforms": list(transforms),
                          "prefetch_batches": prefetch_batches},
                 "train": {"global_batch": batch, "slots": 1, "epochs": 1},
                 "optimizer": optimizer or {"name": "sgd"}}
    path.write_text(json.dumps(described))  # JSON is YAML
    return path


def examine(job_file, *args, temporary, seconds=DOCTOR_S, env=None):
    seen = subprocess.run(
        [BIN / "lockstep", "doctor", job_file, "--workers", "1", "--seconds", str(seconds), "--json",
         *args], capture_output=True, text=True, timeout=600, check=False,
        env={**(env or os.environ), "TMPDIR": str(temporary)})
    if seen.returncode != 0:
        raise AssertionError(f"lockstep doctor ended with {seen.returncode}:\n"
                             + seen.stdout + seen.stderr)
    return json.loads(seen.stdout)


# Each gives the job file, and what is to be closed afterwards.

def slow_disk(scratch):
    """Small images, at most forty a second, and a trainer that takes many thousands."""
    files = image_folder(scratch / "files", 20, SIDE)
    mount = SlowMount(files, scratch / "mount", read_s=0.025)
    return job(scratch / "job.yaml", mount.mount_point, batch=16), mount


def slow_decode(scratch):
    """Images of 2.5 million pixels for a model that sees 256, decoded by all cores."""
    files = image_folder(scratch / "files", 16, 1_600)
    transforms = (f"resize={SIDE}", f"center_crop={SIDE}", "normalize")
    return job(scratch / "job.yaml", files, batch=16, transforms=transforms), None


def too_few_threads(scratch):
    """The same images, decoded by one thread."""
    job_file, _ = slow_decode(scratch)
    described = json.loads(job_file.read_text())
    described["data"]["threads"] = 1
    job_file.write_text(json.dumps(described))
    return job_file, None


def tiny_batch(scratch):
    """One image a step, and a step that goes over a quarter of a million weights and their moments.
    Many images are loaded ahead, so that threads seldom wait for each other's turn."""
    files = synthetic_dataset(scratch / "files", size=28)
    return job(scratch / "job.yaml", files, batch=1, optimizer={"name": "adamw"},
               prefetch_batches=256), None


def no_fault(scratch):
    """A model that computes for long, on images in their final form."""
    files = synthetic_dataset(scratch / "files", size=28)
    return job(scratch / "job.yaml", files, model="cnn", batch=128), None


PLANTED = {"storage": slow_disk, "decode": slow_decode, "threads": too_few_threads,
           "tiny_batch": tiny_batch, "none": no_fault}
