"""resource: the machine gives too little: descriptors, size of files, memory, processes, room on
the disk.
"""
import os
import pathlib
import shutil
import subprocess

from case import Case
from kills import MOMENTS
from stage import Defect, Skip, contextlib, poll
from verdict import expect_next_step, judge

CGROUPS = pathlib.Path("/sys/fs/cgroup")
CRASHES = {"cluster": {"max_crashes": 10, "min_wait_s": 20}}  # as for a job that sets none
CAUSES = ("ulimit", "limit", "memory", "large", "room", "space", "free", "pids", "Cannot allocate",
          "descriptors", "threads", "open files", "Read-only", "failed to map")


def limited(*options):
    """prlimit limits the first start. The second start has no limit."""
    def on(stage):
        if shutil.which("prlimit") is None:
            raise Skip("there is no prlimit")
        stage.may_abort = options[0].startswith("--as")
        run = stage.start(job=stage.write_job(**CRASHES), prefix=("prlimit", *options))
        judge(stage, run, names=CAUSES)
    return on


def limited_resume(*options):
    def on(stage):
        stage.copy_of("killed")
        judge(stage, stage.resume("cluster.max_crashes=10", "cluster.min_wait_s=20",
                                  prefix=("prlimit", *options)),
              names=CAUSES)
    return on


def few_processes(limit, when):
    """The run gets a cgroup of its own. Its limit comes at a moment, and then goes."""
    def on(stage):
        pids = next((path for path in (CGROUPS / "pids", CGROUPS)
                     if (path / "cgroup.procs").exists()), None)
        group = pids and pids / f"lockstep-fault-{os.getpid()}"
        try:
            group.mkdir()
            if not (group / "pids.max").exists():
                group.rmdir()
                raise OSError("no pids.max")
        except (OSError, AttributeError) as error:
            raise Skip(f"no cgroup that counts processes can be made: {error}") from None
        stage.cleanups.append(lambda: remove(group))
        if when == "start":
            (group / "pids.max").write_text(str(limit))
        run = stage.start(job=stage.write_job(**CRASHES), workers=3,
                          prefix=("sh", "-c", f'echo $$ > {group}/cgroup.procs; exec "$@"', "sh"))
        if when != "start":
            MOMENTS["first-step"](stage, run, "")
            victim = run.worker(-1)  # asking takes a while
            MOMENTS[when](stage, run, "")
            (group / "pids.max").write_text(str(limit))
            os.kill(victim, 9)
            expect_next_step(stage, run)

        def lift():
            (group / "pids.max").write_text("max")
        judge(stage, run, names=CAUSES, mend=lift)
    return on


def remove(group):
    with contextlib.suppress(OSError, Defect):
        poll(lambda: not (group / "cgroup.procs").read_text(), "the group was empty", timeout_s=20)
        group.rmdir()


def disk(stage, options):
    """A file system of its own for the run directory."""
    place = stage.scratch / "disk"
    place.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "lockstep-fault", place],
                             capture_output=True, text=True)
    if mounted.returncode != 0:
        raise Skip("nothing can be mounted here: " + mounted.stderr.strip())
    stage.cleanups.append(lambda: subprocess.run(["umount", "-l", place], check=False))
    stage.run_dir = place / "run"
    return place


def remount(place, options):
    subprocess.run(["mount", "-o", "remount," + options, place], check=True)


def little_room(options, more):
    """The disk is small from the start; later there is more room."""
    def on(stage):
        place = disk(stage, options)
        run = stage.start(job=stage.write_job(**CRASHES))
        judge(stage, run, names=CAUSES, mend=lambda: remount(place, more))
    return on


def fill(place, leave=0):
    """Fills the disk until so many bytes are left. Returns a function that makes room again. It
    writes, because posix_fallocate() gives everything back if another process writes meanwhile."""
    filler = place / "filler"
    with open(filler, "wb", buffering=0) as file:
        for block in (1 << 16, 1 << 12):
            with contextlib.suppress(OSError):
                while file.write(bytes(block)):
                    pass
        file.truncate(max(0, file.tell() - leave))
    return lambda: filler.unlink(missing_ok=True)


def filled(moment, leave):
    """Fills the disk while the run trains, but for so many bytes, until the run has ended."""
    def on(stage):
        place = disk(stage, "size=80m")
        run = stage.start(job=stage.write_job(**CRASHES))
        MOMENTS[moment](stage, run, "")
        judge(stage, run, names=CAUSES, mend=fill(place, leave))
    return on


def read_only(moment):
    def on(stage):
        place = disk(stage, "size=80m")
        run = stage.start(job=stage.write_job(**CRASHES))
        MOMENTS[moment](stage, run, "")
        # A remount fails while files are open for writing, unless a bind mount forces it.
        done = subprocess.run(["mount", "-o", "remount,ro", place], capture_output=True)
        if done.returncode != 0:
            raise Skip("a mount in use cannot be made read-only")
        judge(stage, run, names=CAUSES, mend=lambda: remount(place, "rw"))
    return on


def cases():
    for number in (12, 16, 20, 24, 32, 48, 64, 128):
        yield Case(f"resource/descriptors/{number}/start", limited(f"--nofile={number}:{number}"))
    for number in (16, 24, 48):
        yield Case(f"resource/descriptors/{number}/resume",
                   limited_resume(f"--nofile={number}:{number}"))
    for size in (100, 1_000, 4_000, 20_000, 60_000, 150_000, 300_000, 600_000):
        yield Case(f"resource/file-size/{size}/start", limited(f"--fsize={size}:{size}"))
    for size in (1_000, 200_000):
        yield Case(f"resource/file-size/{size}/resume", limited_resume(f"--fsize={size}:{size}"))
    for megabytes in (100, 300, 600, 900, 1_500, 4_000):
        size = megabytes << 20
        yield Case(f"resource/address-space/{megabytes}-MiB/start", limited(f"--as={size}:{size}"))
    yield Case("resource/locked-memory/0/start", limited("--memlock=0:0"))
    yield Case("resource/stack/256-KiB/start", limited("--stack=262144:262144"))
    yield Case("resource/core/0/start", limited("--core=0:0"))
    for limit in (4, 8, 12, 20, 40):
        yield Case(f"resource/processes/{limit}/start", few_processes(limit, "start"))
    for limit in (1, 12):
        yield Case(f"resource/processes/{limit}/middle", few_processes(limit, "middle"))
    for size in ("4k", "100k", "1m", "63m"):
        yield Case(f"resource/room/{size}/start", little_room(f"size={size}", "size=100m"))
    for inodes in (4, 12, 24, 40):
        yield Case(f"resource/inodes/{inodes}/start",
                   little_room(f"size=80m,nr_inodes={inodes}", "nr_inodes=10000"))
    for moment in ("first-step", "checkpoint", "middle", "end"):
        for leave in (0, 300_000):
            yield Case(f"resource/full-disk/but-{leave}-bytes/{moment}", filled(moment, leave))
    yield Case("resource/read-only/remount/middle", read_only("middle"))
