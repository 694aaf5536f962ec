#!/usr/bin/env python3
"""The cost of faults: kill -9 of a worker, and a dead coordinator.

    recovery.py [--workers 8] [--kills 20] [--model mlp] [--rounds 5] [--away-s 5]
                [--python] [--slot-ms 20]

--python: a training loop in Python (tests/python/scripts/train.py), whose slots take --slot-ms
longer, asleep, so that eight interpreters fit a small machine.
kill: from kill -9 of one worker to the first step that the survivors apply without it, as a
survivor's own /metrics show it. Kills only when all workers train again. away: the step rate of a
worker while the coordinator is dead (processes that would start another one are stopped), against
the mean of the rates before and after, in each of several rounds. Prints median, least and most,
and one JSON object.
"""
import argparse
import json
import os
import pathlib
import random
import re
import shutil
import signal
import statistics
import sys
import time
import urllib.request

HERE = pathlib.Path(__file__).resolve()
for folder in ("harness", "python/world"):
    sys.path.insert(0, str(HERE.parents[1] / folder))
from harness import Run, scratch_directory, synthetic_dataset  # noqa: E402
from script_runs import SCRIPTS, make_python, variables_of  # noqa: E402

TARGET_S = 1.0


class Probe:
    """Reads a worker's step and generation from its own /metrics."""

    def __init__(self, address):
        self.url = f"http://{address}/metrics"

    def read(self):
        with urllib.request.urlopen(self.url, timeout=5) as answer:
            text = answer.read().decode()
        def value(name):
            return int(float(re.search(rf"^{name}(?:{{[^}}]*}})? (\S+)$", text, re.M).group(1)))
        return value("lockstep_step"), value("lockstep_generation")


def probes(run):
    """Probes of the workers by local rank."""
    url = f"http://{run.coordinator()['http']}/sd"
    with urllib.request.urlopen(url, timeout=5) as answer:
        targets = json.loads(answer.read())
    return {int(t["labels"]["local_rank"]): Probe(t["targets"][0]) for t in targets
            if "local_rank" in t["labels"]}


def kill_one(run, rng, workers):
    """Seconds from the kill to the next applied step."""
    members = run.wait_for(lambda: run.status() if len(run.workers()) == workers else None,
                           f"all {workers} workers trained")["members"]
    run.wait_for_more_steps(50)
    victim = rng.choice(members)
    witness = rng.choice([m for m in members if m["pid"] != victim["pid"]])
    probe = probes(run)[witness["local_rank"]]
    _, generation = probe.read()
    begin = time.monotonic()
    os.kill(victim["pid"], signal.SIGKILL)
    last = None
    while True:
        step, now_in = probe.read()
        now = time.monotonic()
        if now_in > generation and last is not None and step > last:
            return now - begin
        last = step if now_in == generation or last is None else last
        time.sleep(0.001)


def rate(probe, seconds):
    begin, (first, _) = time.monotonic(), probe.read()
    time.sleep(seconds)
    last, _ = probe.read()
    return (last - first) / (time.monotonic() - begin)


def away(run, seconds):
    """Step rates before, while and after the coordinator is dead."""
    probe = probes(run)[run.status()["members"][0]["local_rank"]]
    killed = run.coordinator()["pid"]
    before = rate(probe, seconds)
    run.process.send_signal(signal.SIGSTOP)
    os.kill(killed, signal.SIGKILL)
    during = rate(probe, seconds)
    run.process.send_signal(signal.SIGCONT)
    run.wait_for(lambda: run.coordinator()["pid"] != killed and
                 run.status()["state"] == "training", "another coordinator served")
    run.wait_for_more_steps(50)  # the new coordinator has the records of the absence
    return before, during, rate(probe, seconds)


def report_kills(seconds, workers):
    print(f"kill -9 of one of {workers} workers to the next applied step, {len(seconds)} kills: "
          f"median {statistics.median(seconds) * 1e3:.0f} ms, least {min(seconds) * 1e3:.0f}, "
          f"most {max(seconds) * 1e3:.0f}  target {TARGET_S * 1e3:.0f} ms: "
          f"{'met' if max(seconds) < TARGET_S else 'MISSED'}")


def report_away(rounds, seconds):
    """Prints the rates and returns the ratios."""
    print(f"the coordinator dead for {seconds:g} s, {len(rounds)} rounds, steps/s of a worker:")
    for name, rates in zip(("before", "away", "after"), zip(*rounds)):
        print(f"  {name:6} median {statistics.median(rates):.0f}, least {min(rates):.0f}, "
              f"most {max(rates):.0f}")
    ratios = [2 * during / (before + after) for before, during, after in rounds]
    print(f"  away / mean of before and after: median {statistics.median(ratios):.2f}, "
          f"least {min(ratios):.2f}, most {max(ratios):.2f}")
    return ratios


def native_run(scratch, workers, model):
    data = synthetic_dataset(scratch / "data", train=3000)
    job = scratch / "job.yaml"
    job.write_text(json.dumps({
        "job": "recovery", "model": {"name": model},
        "data": {"train": {"path": str(data)}, "eval": {"path": ""}},
        "train": {"global_batch": 64, "slots": workers, "max_steps": 100_000_000},
        "cluster": {"max_crashes": 100000, "start_timeout_s": 300}}))
    return Run([job, "--workers", workers], scratch / "run")


def script_run(scratch, workers, model, slot_ms):
    words = [SCRIPTS / "train.py", f"script.args=[{model}, fp32, 0, {slot_ms}]", "train.epochs=0",
             "train.max_steps=100000000", f"train.slots={workers}",
             f"train.global_batch={8 * workers}", "checkpoint.every_steps=1000",
             "cluster.max_crashes=100000", "--workers", workers]
    variables = variables_of(make_python(scratch), scratch)
    return Run(words, scratch / "run", {**os.environ, **variables})


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--model", default="mlp")
    parser.add_argument("--rounds", type=int, default=5, help="with a dead coordinator")
    parser.add_argument("--away-s", type=float, default=5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--python", action="store_true", help="a training loop in Python")
    parser.add_argument("--slot-ms", type=int, default=20, help="with --python")
    arguments = parser.parse_args()
    scratch = scratch_directory()
    if arguments.python:
        run = script_run(scratch, arguments.workers, arguments.model, arguments.slot_ms)
    else:
        run = native_run(scratch, arguments.workers, arguments.model)
    rng = random.Random(arguments.seed)
    try:
        run.wait_for_step(100)
        seconds = [kill_one(run, rng, arguments.workers) for _ in range(arguments.kills)]
        run.wait_for(lambda: len(run.workers()) == arguments.workers, "all workers trained")
        run.wait_for_more_steps(100)
        rounds = [away(run, arguments.away_s) for _ in range(arguments.rounds)]
    finally:
        run.process.send_signal(signal.SIGCONT)
        run.process.send_signal(signal.SIGINT)
        run.wait()
        shutil.rmtree(scratch, ignore_errors=True)
    if seconds:
        report_kills(seconds, arguments.workers)
    ratios = report_away(rounds, arguments.away_s) if rounds else []
    print(json.dumps({"kill_s": seconds, "steps_per_second": rounds, "away_ratio": ratios}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
