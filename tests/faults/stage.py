"""The stage of one case: a directory of its own, runs of a small job, and what the case sees of
them.

All cases share a world (`--world`): the data, the job, the undisturbed run whose bits every case
must reach, and run directories that were killed or stopped, of which cases damage copies.
"""
import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "harness"))
import harness  # noqa: E402
from fails_with import COMPLAINT, CRASH  # noqa: E402
from harness import BIN, NOT_YET, Run, kill_at_once, processes_of, synthetic_dataset  # noqa: E402

STEPS, EVERY, KEEP = 240, 40, 2
LEASE_S = 1
SLOT_MS = 5  # two workers take 10 ms a step, asleep
HANG_S = 200  # on an idle machine no case takes a tenth of it
SECTIONS = {"job": "faults", "seed": 11, "model": {"name": "mlp", "dropout": 0.25},
            "train": {"global_batch": 64, "slots": 4, "max_steps": STEPS},
            "checkpoint": {"every_steps": EVERY, "keep": KEEP},
            "optimizer": {"name": "adamw", "lr": 0.0001},
            "cluster": {"lease_s": LEASE_S, "grace_s": 10, "max_crashes": 1000,
                        "max_preemptions": 1000, "rebalance": False, "start_timeout_s": 120}}


# Ends after step 168, because no evaluation is better than the one after step 144.
PATIENT = {"eval": {"every_steps": 10}, "checkpoint": {"best": "accuracy", "every_steps": 16},
           "train": {"patience": 3, "eval_batch": 4}, "optimizer": {"lr": 0.00001},
           "schedule": {"name": "cosine"}}


class Skip(Exception):
    """The machine lacks something that a case needs."""


class Defect(Exception):
    """The program did what it must never do."""


class Started(Run):
    """A run whose stdout and stderr go to two files."""

    def spawn(self, argv, run_dir, env, prefix=()):
        self.run_dir, self.prefix = pathlib.Path(run_dir), []
        self.args, self.env = argv, env
        beside = pathlib.Path((env or {}).get("TMPDIR", self.run_dir))  # not the disk of the run
        stem = f"{self.run_dir.name}.{time.monotonic_ns()}"  # each try keeps its own
        self.output, self.errors = beside.parent / f"{stem}.out", beside.parent / f"{stem}.err"
        with open(self.output, "wb") as out, open(self.errors, "wb") as err:
            self.begun = time.monotonic()
            self.process = subprocess.Popen(argv, stdout=out, stderr=err, env=env,
                                            stdin=subprocess.DEVNULL, start_new_session=True)

    def text(self):
        return self.output.read_text(errors="replace") + self.complaint()

    def complaint(self):
        return self.errors.read_text(errors="replace")

    def steps(self):
        """The number of lines in the history so far; 0 if there is no history."""
        with contextlib.suppress(OSError):
            with open(self.run_dir / "history.jsonl", "rb") as f:
                return f.read().count(b"\n")
        return 0

    def ended(self):
        return self.process.poll() is not None


def checkpoints(run_dir):
    """Names of the complete checkpoints, the oldest first."""
    return sorted(path.name for path in (pathlib.Path(run_dir) / "checkpoints").glob("step-*"))


def step_of(name):
    return int(name.split("-")[1])


def poll(condition, what, run=None, timeout_s=HANG_S, pause_s=0.002):
    """Returns the condition's value once it is true. The case's timing is wrong if the run ends
    first."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        with contextlib.suppress(*NOT_YET):
            value = condition()
            if value:
                return value
        if run is not None and run.ended():
            raise Defect(f"the run ended ({run.process.returncode}) before {what}:\n"
                         + run.text()[-2000:])
        time.sleep(pause_s)
    raise Defect(f"hangs: {timeout_s} s passed before {what}"
                 + (":\n" + run.text()[-2000:] if run else ""))


def log_events(run_dir, *kinds):
    """Lines of the coordinator's log with these events. Leaves out cut and damaged lines."""
    found = []
    for path in sorted((pathlib.Path(run_dir) / "logs").glob("coordinator*.log.jsonl")):
        with contextlib.suppress(OSError):
            for line in path.read_text(errors="replace").splitlines():
                with contextlib.suppress(ValueError, KeyError, TypeError):
                    event = json.loads(line)
                    if event["event"] in kinds:
                        found.append(event)
    return found


class World:
    """The files that all cases share. Made once; read only afterwards."""

    def __init__(self, directory):
        self.directory = pathlib.Path(directory)
        self.data, self.job = self.directory / "data", self.directory / "job.yaml"
        self.patient_job = self.directory / "patient.yaml"

    def make(self):
        synthetic_dataset(self.data, train=1500)
        write_job(self.job, self.data)
        far = self.directory / "far"  # the files as a server has them
        shutil.copytree(self.data, far)
        (far / "manifest.txt").write_text("".join(f"{path.name}\n"
                                                  for path in sorted(self.data.iterdir())))
        whole = Started([self.job, "--workers", 1], self.directory / "whole")
        if whole.wait(HANG_S) != 0:
            raise SystemExit("the undisturbed run failed:\n" + whole.text())
        self._make_patient()
        self._interrupt("killed", lambda run: kill_at_once(processes_of(run.run_dir)))
        self._interrupt("stopped", lambda run: run.process.send_signal(signal.SIGTERM))

    def _make_patient(self):
        synthetic_dataset(self.directory / "patient-data", train=1500, evaluation=400)
        write_job(self.patient_job, self.directory / "patient-data", **PATIENT)
        whole = Started([self.patient_job, "--workers", 1], self.directory / "patient")
        if whole.wait(HANG_S) != 0 or whole.summary()["best_checkpoint"]["step"] == \
                whole.summary()["steps"]:
            raise SystemExit("patience did not end the undisturbed run:\n" + whole.text())
        run = Started([self.patient_job, "--workers", 2], self.directory / "patient-killed",
                      {**os.environ, **harness.slow_slots(4 * SLOT_MS)})
        best = whole.summary()["best_checkpoint"]["step"]
        poll(lambda: step_of(checkpoints(run.run_dir)[-1]) > best, "one after the best", run)
        kill_at_once(processes_of(run.run_dir))
        run.wait(HANG_S)
        poll(lambda: not processes_of(run.run_dir), "its processes were gone")

    def _interrupt(self, name, how):
        run = Started([self.job, "--workers", 2], self.directory / name,
                      {**os.environ, **harness.slow_slots(SLOT_MS)})
        poll(lambda: checkpoints(run.run_dir) and run.steps() >= 55, "55 steps", run)
        self._copy_live(run.run_dir, self.directory / f"{name}-older")
        poll(lambda: len(log_events(run.run_dir, "checkpoint_written")) >= 3 and run.steps() >= 135,
             "three checkpoints", run)
        how(run)
        if run.wait(HANG_S) not in (-signal.SIGKILL, 75):
            raise SystemExit("the run ended before it could be interrupted:\n" + run.text())
        poll(lambda: not processes_of(run.run_dir), "its processes were gone")

    def _copy_live(self, source, target):
        """Copies as a backup of a live run does: files of slightly different moments."""
        subprocess.run(["cp", "-a", source, target], check=False, stderr=subprocess.DEVNULL)

    def whole(self, name="whole"):
        directory = self.directory / name
        rows = [json.loads(line) for line in (directory / "history.jsonl").open()]
        return json.loads((directory / "summary.json").read_text())["weights_sha256"], rows


def write_job(path, data, /, **sections):
    job = {**SECTIONS, "data": {"train": {"path": str(data)}, "eval": {"path": str(data)}}}
    for name, section in sections.items():
        job[name] = {**job.get(name, {}), **section} if isinstance(section, dict) else section
    path.write_text(json.dumps(job))
    return path


class Stage:
    def __init__(self, world, scratch):
        self.world, self.scratch = world, pathlib.Path(scratch)
        self.run_dir = self.scratch / "run"
        self.temporary = self.scratch / "tmp"
        self.temporary.mkdir(parents=True)
        self.job = world.job
        self.reference = "whole"  # the undisturbed run
        self.runs, self.cleanups = [], []
        self.seen = {}  # figures of the case: seconds to the next step, exit codes
        self.may_abort = False  # a worker may abort for want of memory; the run tells of it
        self.may_lose_losses = False  # a command that the run advises makes a new journal
        self.may_rewind = False  # the case itself took checkpoints away

    def environment(self, env=None, slot_ms=SLOT_MS):
        mine = {**os.environ, "TMPDIR": str(self.temporary), **(env or {})}
        slow = harness.slow_slots(slot_ms) if slot_ms else {}
        if "LD_PRELOAD" in slow and env and "LD_PRELOAD" in env:
            slow["LD_PRELOAD"] += ":" + env["LD_PRELOAD"]
        return {**mine, **slow}

    def start(self, *words, workers=2, env=None, prefix=(), slot_ms=SLOT_MS, job=None):
        """`lockstep run JOB --workers N`, slowed so that it lasts."""
        return self.launch([job or self.job, "--workers", workers, *words], env, prefix, slot_ms)

    def resume(self, *words, env=None, prefix=(), slot_ms=0):
        return self.launch(["--resume", *words], env, prefix, slot_ms)

    def launch(self, words, env=None, prefix=(), slot_ms=0):
        run = Started(words, self.run_dir, self.environment(env, slot_ms), prefix)
        self.runs.append(run)
        return run

    def be_patient(self, **sections):
        """The run of this case ends by train.patience, and keeps the best checkpoint."""
        self.reference, self.job = "patient", self.world.patient_job
        if sections:
            self.job = write_job(self.scratch / "job.yaml", self.world.directory / "patient-data",
                                 **PATIENT, **sections)

    def write_job(self, **sections):
        self.job = write_job(self.scratch / "job.yaml", self.world.data, **sections)
        return self.job

    def copy_of(self, name):
        """A run directory that was killed or stopped at step 135 or later."""
        shutil.copytree(self.world.directory / name, self.run_dir, symlinks=True)
        job = self.run_dir.with_name("intact")
        shutil.copytree(self.world.directory / name, job, symlinks=True)
        return self.run_dir

    def intact(self, name):
        """The same file as it was before the damage."""
        return self.scratch / "intact" / name

    def kill_all(self):
        for run in self.runs:
            for pid in processes_of(run.run_dir):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            if not run.ended():
                run.process.kill()
            run.process.wait()

    def clean(self):
        self.kill_all()
        for cleanup in reversed(self.cleanups):
            cleanup()
        shutil.rmtree(self.scratch, ignore_errors=True)
