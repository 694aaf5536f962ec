#!/usr/bin/env python3
"""Chaos: runs a seeded schedule of faults against one run, and compares its result with an
undisturbed one.

    chaos.py --seed 7 [--workers 8] [--faults 50] [--model mlp] [--steps N]

Faults:
- kill -9 of a worker, of several at once, of the coordinator, of the agent
- SIGSTOP of a worker and SIGCONT later
- SIGTERM of a worker
- another number of workers
- a reset of a worker's connection to the coordinator
- a cut connection between two workers

The seed alone decides which fault comes after how many steps. Victims are drawn by rank. If the
last worker gets SIGTERM, the run ends with code 75, and chaos.py runs it again with --resume.

It fails if the run does not end with code 0 at last, or has other weights, losses or samples than
an undisturbed run with one worker. It then prints the seed and the command that replays it. Cutting
connections needs the rights of a debugger.
"""
import argparse
import contextlib
import os
import pathlib
import random
import shutil
import signal
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "harness"))
from harness import BIN, Run, lockstep, scratch_directory, synthetic_dataset, trace  # noqa: E402
import harness  # noqa: E402
import sockets  # noqa: E402

# Weights of the faults: workers die often, the others now and then.
FAULTS = {"kill": 8, "kill_several": 2, "stop": 3, "preempt": 3, "coordinator": 4, "scale": 4,
          "agent": 1, "reset": 2, "cut": 1}
STOPPED_S = (0.2, 4.0)  # a stop is shorter or longer than the lease of 2 s


def schedule(seed, faults, workers, steps):
    """[(at step, fault, number in [0, 1) that picks the victim, workers wanted)]"""
    rng = random.Random(seed)
    kinds, weights = zip(*FAULTS.items())
    begin, end = steps // 50, steps - steps // 10
    at = sorted(rng.randrange(begin, end) for _ in range(faults))
    return [(step, rng.choices(kinds, weights)[0], rng.random(), rng.randint(1, workers))
            for step in at]


class Chaos:
    def __init__(self, start, say):
        self.start = start  # gives a Run; called with further arguments
        self.run = start()
        self.say = say
        self.stopped = []  # (when to continue, pid)

    def workers(self):
        with contextlib.suppress(OSError, ValueError, KeyError):
            return self.run.workers()
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
            self.run = self.start("--resume")
        return code in (None, 75)

    def play(self, faults, timeout_s):
        """Returns the last exit code."""
        deadline = time.monotonic() + timeout_s
        for at, fault, pick, wanted in faults:
            while self.steps() < at:
                if time.monotonic() > deadline or not self.goes_on():
                    self.say(f"the run ended or hung before step {at}")
                    return self.run.process.poll()
            self.say(f"step {at}: {fault}" + (f" to {wanted}" if fault == "scale" else ""))
            self.act(fault, pick, wanted)
        while time.monotonic() < deadline and self.goes_on():
            pass
        return self.run.process.poll()


def job_file(directory, data, model, steps, slots):
    import json
    path = directory / "job.yaml"
    path.write_text(json.dumps({
        "job": "chaos", "seed": 3, "model": {"name": model, "dropout": 0.1},
        "data": {"train": {"path": str(data)}, "eval": {"path": str(data)}},
        "train": {"global_batch": 64, "slots": slots, "max_steps": steps},
        "optimizer": {"name": "adamw", "lr": 0.0001},
        "checkpoint": {"every_steps": max(50, steps // 20), "keep": 2},
        "cluster": {"lease_s": 2, "max_crashes": 100000, "max_preemptions": 100000,
                    "start_timeout_s": 300}}))
    return path


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


def one_seed(seed, workers, faults, model, steps, say=print, timeout_s=1800):
    """Plays one seed in a scratch directory. Returns the defects and the directory, which is kept
    if there are any."""
    scratch = scratch_directory()
    data = synthetic_dataset(scratch / "data", train=3000)
    job = job_file(scratch, data, model, steps, slots=workers)
    undisturbed = Run([job, "--workers", 1], scratch / "undisturbed")
    if undisturbed.wait(timeout_s) != 0:
        return ["the undisturbed run failed", undisturbed.text()[-2000:]], scratch
    chaos = Chaos(lambda *more: Run([job, "--workers", workers, *more], scratch / "run"), say)
    try:
        code = chaos.play(schedule(seed, faults, workers, steps), timeout_s)
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
    parser.add_argument("--model", default="mlp")
    parser.add_argument("--steps", type=int, default=0, help="default: 400 for each fault")
    arguments = parser.parse_args()
    steps = arguments.steps or 400 * arguments.faults
    print(f"seed {arguments.seed}: {arguments.workers} workers, {arguments.faults} faults, "
          f"{steps} steps", flush=True)
    begin = time.monotonic()
    wrong, scratch = one_seed(arguments.seed, arguments.workers, arguments.faults, arguments.model,
                              steps, say=lambda text: print("  " + text, flush=True))
    if not wrong:
        print(f"seed {arguments.seed}: same weights, losses and samples as undisturbed "
              f"({time.monotonic() - begin:.0f} s)")
        return 0
    print(f"seed {arguments.seed} FAILED, kept {scratch}\n" + "\n".join(wrong))
    print(f"replay: LOCKSTEP_BIN={BIN} python3 {pathlib.Path(__file__)} --seed {arguments.seed} "
          f"--workers {arguments.workers} --faults {arguments.faults} --model {arguments.model} "
          f"--steps {steps}")
    return 1


if __name__ == "__main__":
    sys.exit(main())
