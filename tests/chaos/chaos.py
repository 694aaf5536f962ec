#!/usr/bin/env python3
"""Chaos: runs a seeded schedule of faults against one run, and compares its result with an
undisturbed one.

    chaos.py --seed 7 [--workers 8] [--faults 50] [--model mlp] [--python] [--steps N]

--python: a training loop in Python (tests/python/scripts/train.py), each worker with a data process.

Faults:
- kill -9 of a worker, of several at once, of the coordinator, of the agent
- SIGSTOP of a worker and SIGCONT later
- SIGTERM of a worker
- another number of workers
- a reset of a worker's connection to the coordinator
- a cut connection between two workers
- with --python: kill -9 of a data process, of the zygote that forks them; a stop of the run, which
  goes on in another world

The seed alone decides which fault comes after how many steps. Victims are drawn by rank. If the
last worker gets SIGTERM, the run ends with code 75, and chaos.py runs it again with --resume.

It fails if the run does not end with code 0 at last, or has other weights, losses or samples than
an undisturbed run with one worker. It then prints the seed and the command that replays it. Cutting
connections needs the rights of a debugger.
"""
import argparse
import contextlib
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import time

for folder in ("harness", "python/world"):
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / folder))
from harness import (BIN, Run, lockstep, scratch_directory, synthetic_dataset,  # noqa: E402
                     trace, workers_of)
import harness  # noqa: E402
import sockets  # noqa: E402
from script_runs import SCRIPTS, children_of, make_python, variables_of  # noqa: E402

# Weights of the faults: workers die often, the others now and then.
FAULTS = {"kill": 8, "kill_several": 2, "stop": 3, "preempt": 3, "coordinator": 4, "scale": 4,
          "agent": 1, "reset": 2, "cut": 1}
FAULTS_OF_SCRIPTS = {**FAULTS, "data_process": 4, "zygote": 3, "resume": 1}
STOPPED_S = (0.2, 4.0)  # a stop is shorter or longer than the lease of 2 s
CLUSTER = {"lease_s": 2, "max_crashes": 100000, "max_preemptions": 100000, "start_timeout_s": 300}
SLOT_MS = 60  # of a script


def schedule(seed, faults, workers, steps, weights_of=FAULTS):
    """[(at step, fault, number in [0, 1) that picks the victim, workers wanted)]"""
    rng = random.Random(seed)
    kinds, weights = zip(*weights_of.items())
    begin, end = steps // 50, steps - steps // 10
    at = sorted(rng.randrange(begin, end) for _ in range(faults))
    return [(step, rng.choices(kinds, weights)[0], rng.random(), rng.randint(1, workers))
            for step in at]


class Chaos:
    def __init__(self, start, say):
        self.start = start  # gives a Run; called with its workers (None: all) and more arguments
        self.run = start(None)
        self.resumes_with = None  # workers
        self.say = say
        self.stopped = []  # (when to continue, pid)

    def workers(self):
        with contextlib.suppress(OSError, ValueError, KeyError, subprocess.TimeoutExpired):
            return workers_of(self.run.ask())
        return []

    def send(self, pid, sig):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, sig)

    def act(self, fault, pick, wanted):
        if fault == "coordinator":
            return self.send(self.run.coordinator()["pid"], signal.SIGKILL)
        if fault == "agent":
            with contextlib.suppress(IndexError):
                self.send(self.run.agent(), signal.SIGKILL)
            return None
        if fault == "scale":
            return lockstep("scale", self.run.run_dir, wanted)
        if fault == "resume":
            self.resumes_with = wanted
            return self.send(self.run.process.pid, signal.SIGINT)
        pids = self.workers()
        if not pids:
            return None
        victim = pids[int(pick * len(pids))]
        if fault == "stop":
            self.stopped.append((time.monotonic() + STOPPED_S[0]
                                 + pick * (STOPPED_S[1] - STOPPED_S[0]), victim))
            return self.send(victim, signal.SIGSTOP)
        if fault == "preempt":
            return self.send(victim, signal.SIGTERM)
        if fault in ("data_process", "zygote"):
            with contextlib.suppress(IndexError):  # it is gone, or has none yet
                found = children_of(self.run.run_dir, victim)[0]
                if fault == "data_process":
                    found = children_of(self.run.run_dir, found)[0]
                self.send(found, signal.SIGKILL)
            return None
        if fault in ("reset", "cut"):
            with contextlib.suppress(OSError, ValueError, KeyError, AssertionError):  # it is gone
                self.disconnect(fault, victim, pids[0] if victim != pids[0] else pids[-1])
            return None
        several = pids[:max(1, len(pids) // 2)] if fault == "kill_several" else [victim]
        for pid in several:
            self.send(pid, signal.SIGKILL)
        return None

    def disconnect(self, fault, victim, peer):
        if fault == "reset":
            host, port = self.run.coordinator()["control"].rsplit(":", 1)
            sockets.cut(victim, (host, int(port)), sockets.reset)
        else:
            sockets.cut(victim, sockets.unix_name(peer))
            sockets.cut(peer, sockets.unix_name(victim))

    def continue_stopped(self, everyone=False):
        now = time.monotonic()
        for when, pid in list(self.stopped):
            if everyone or now >= when:
                self.send(pid, signal.SIGCONT)
                self.stopped.remove((when, pid))

    def steps(self):
        with contextlib.suppress(OSError):
            with open(self.run.run_dir / "history.jsonl", "rb") as f:
                return sum(chunk.count(b"\n") for chunk in iter(lambda: f.read(1 << 20), b""))
        return 0

    def goes_on(self):
        """False once the run has ended for good. Resumes a run that ended with code 75."""
        self.continue_stopped()
        time.sleep(0.02)
        code = self.run.process.poll()
        if code == 75:
            self.say("it ended with code 75 and is resumed")
            self.run = self.start(self.resumes_with, "--resume")
            self.resumes_with = None
        return code in (None, 75)

    def play(self, faults, timeout_s, has_played=lambda: None):
        """Calls `has_played` after the last fault. Returns the last exit code."""
        deadline = time.monotonic() + timeout_s
        for at, fault, pick, wanted in faults:
            while self.steps() < at:
                if time.monotonic() > deadline or not self.goes_on():
                    self.say(f"the run ended or hung before step {at}")
                    return self.run.process.poll()
            self.say(f"step {at}: {fault}"
                     + (f" to {wanted}" if fault in ("scale", "resume") else ""))
            self.act(fault, pick, wanted)
        has_played()
        while time.monotonic() < deadline and self.goes_on():
            pass
        return self.run.process.poll()


class Native:
    """A job of a model of Lockstep's own."""

    faults = FAULTS
    steps_of_fault = 400
    environment = None
    prefix = ()

    def __init__(self, scratch, model, steps, slots):
        data = synthetic_dataset(scratch / "data", train=3000)
        self.job = scratch / "job.yaml"
        self.job.write_text(json.dumps({
            "job": "chaos", "seed": 3, "model": {"name": model, "dropout": 0.1},
            "data": {"train": {"path": str(data)}, "eval": {"path": str(data)}},
            "train": {"global_batch": 64, "slots": slots, "max_steps": steps},
            "optimizer": {"name": "adamw", "lr": 0.0001},
            "checkpoint": {"every_steps": max(50, steps // 20), "keep": 2}, "cluster": CLUSTER}))

    def words(self):
        return [self.job]

    def take_ms(self, milliseconds):
        pass  # its steps are as fast as they are


class Script:
    """A training loop in Python."""

    faults = FAULTS_OF_SCRIPTS
    steps_of_fault = 40

    def __init__(self, scratch, model, steps, slots):
        self.environment = {**os.environ, **variables_of(make_python(scratch), scratch)}
        self.pace = scratch / "pace"
        self.prefix = ()
        script = [SCRIPTS / (f"{model}.py" if model in ("phases", "everyday") else "train.py")]
        if model == "package":
            model = "drawn"
            script, self.prefix = ["-m", "proj.train"], ("env", "-C", str(scratch))
            (scratch / "proj").mkdir()
            shutil.copy(SCRIPTS / "train.py", scratch / "proj")
        precision = "both" if model == "all" else "fp32"
        self.job = [*script, f"script.args=[{model}, {precision}, 1, {self.pace}]",
                    f"train.max_steps={steps}", "train.epochs=0", f"train.slots={slots}",
                    f"train.global_batch={8 * slots}", f"checkpoint.every_steps={max(20, steps // 20)}",
                    *(f"cluster.{key}={value}" for key, value in CLUSTER.items())]

    def words(self):
        return self.job

    def take_ms(self, milliseconds):
        """Makes each slot sleep so long: a worker that starts again needs seconds, and has to be
        there again when the next fault comes."""
        fresh = self.pace.with_suffix(".new")
        fresh.write_text(str(milliseconds))
        fresh.rename(self.pace)


def evaluations(run):
    path = run.run_dir / "evals.jsonl"
    return path.read_text() if path.exists() else ""


def check(run, undisturbed, code):
    """The defects of the result; empty if there are none."""
    wrong = []
    if code != 0:
        how = "hung" if code is None else f"ended with code {code}"
        return [f"it {how}", run.text()[-3000:]]
    if run.summary()["weights_sha256"] != undisturbed.summary()["weights_sha256"]:
        wrong.append("other weights")
    if trace(run) != trace(undisturbed):
        wrong.append(f"other losses or samples: {trace(run)}, {trace(undisturbed)}")
    if evaluations(run) != evaluations(undisturbed):
        wrong.append(f"other evaluations: {evaluations(run)}, {evaluations(undisturbed)}")
    audit = lockstep("audit", run.run_dir)
    if audit.returncode != 0:
        wrong.append(f"audit: {audit.stdout}{audit.stderr}")
    deadline = time.monotonic() + 30
    while harness.processes_of(run.run_dir) and time.monotonic() < deadline:
        time.sleep(0.05)
    if harness.processes_of(run.run_dir):
        wrong.append(f"processes left behind: {harness.processes_of(run.run_dir)}")
    if harness.temporary_files(run.run_dir):
        wrong.append(f"files left behind: {harness.temporary_files(run.run_dir)}")
    return wrong


def one_seed(seed, workers, faults, model, steps, say=print, timeout_s=1800, kind=Native):
    """Plays one seed in a scratch directory. Returns the defects and the directory, which stays if
    there are any."""
    scratch = scratch_directory()
    job = kind(scratch, model, steps, workers)

    def start(name, of, *more):
        return Run([*job.words(), "--workers", of, *more], scratch / name, job.environment,
                   job.prefix)

    job.take_ms(0)
    undisturbed = start("undisturbed", 1)
    if undisturbed.wait(timeout_s) != 0:
        return ["the undisturbed run failed", undisturbed.text()[-2000:]], scratch
    job.take_ms(SLOT_MS)
    chaos = Chaos(lambda of, *more: start("run", of or workers, *more), say)
    try:
        code = chaos.play(schedule(seed, faults, workers, steps, job.faults), timeout_s,
                          lambda: job.take_ms(0))
        wrong = check(chaos.run, undisturbed, code)
    finally:
        chaos.continue_stopped(everyone=True)
        if chaos.run.process.poll() is None:
            chaos.run.process.kill()
            chaos.run.process.wait()
    if not wrong:
        shutil.rmtree(scratch, ignore_errors=True)
    return wrong, scratch


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--faults", type=int, default=50)
    parser.add_argument("--model", default="mlp",
                        help="mlp or cnn; with --python also gpt, all (the three in fp32 and bf16), drawn "
                        "(samples drawn by weights), package (the same, by -m), phases (several "
                        "updates on a batch), everyday (epochs, early stopping, buffers by "
                        "rule, two evaluations)")
    parser.add_argument("--python", action="store_true", help="a training loop in Python")
    parser.add_argument("--steps", type=int, default=0,
                        help="default: 400 for each fault, 40 with --python")
    arguments = parser.parse_args()
    kind = Script if arguments.python else Native
    steps = arguments.steps or kind.steps_of_fault * arguments.faults
    print(f"seed {arguments.seed}: {arguments.workers} workers, {arguments.faults} faults, "
          f"{steps} steps", flush=True)
    begin = time.monotonic()
    wrong, scratch = one_seed(arguments.seed, arguments.workers, arguments.faults, arguments.model,
                              steps, say=lambda text: print("  " + text, flush=True),
                              timeout_s=max(1800, 30 * arguments.faults), kind=kind)
    if not wrong:
        print(f"seed {arguments.seed}: same weights, losses and samples as undisturbed "
              f"({time.monotonic() - begin:.0f} s)")
        return 0
    print(f"seed {arguments.seed} FAILED, kept {scratch}\n" + "\n".join(wrong))
    print(f"replay: LOCKSTEP_BIN={BIN} python3 {pathlib.Path(__file__)} --seed {arguments.seed} "
          f"--workers {arguments.workers} --faults {arguments.faults} --model {arguments.model} "
          f"--steps {steps}" + (" --python" if arguments.python else ""))
    return 1


if __name__ == "__main__":
    sys.exit(main())
