#!/usr/bin/env python3
"""The cost of checks for silent corruption: steps/s with train.check_every 100 and 10, against
none.

    check_cost.py [--workers 2] [--rounds 5] [--seconds 6] [--data DIR]

Every round runs all settings in turn, each in a run of its own. A worker's own /metrics give the
rate over `--seconds`, after the first steps. Prints the median ratio to the rate without checks in
the same round, and the range of the rounds; the same for the processor time that all workers spend
on a step, which other work on the machine disturbs less; then one JSON object.
"""
import argparse
import json
import os
import pathlib
import shutil
import signal
import statistics
import sys
import tempfile

from recovery import probes, rate
from harness import FASHION, Run

EVERY = (0, 100, 10)
WARM_STEPS = 100


def processor_s(pids):
    """The processor time that these processes have used so far."""
    fields = [pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
              for pid in pids]
    return sum(int(f[11]) + int(f[12]) for f in fields) / os.sysconf("SC_CLK_TCK")


def measure(directory, args, model, every):
    """Steps per second, and processor milliseconds per step."""
    job = {"job": "check-cost", "model": {"name": model},
           "data": {"train": {"path": str(args.data)}},
           "train": {"global_batch": 128, "epochs": 10_000, "check_every": every},
           "cluster": {"workers": args.workers}, "checkpoint": {"every_steps": 0}}
    path = directory / "job.json"
    path.write_text(json.dumps(job))  # JSON is YAML
    run = Run([path], directory / "run")
    try:
        run.wait_for_workers(args.workers)
        probe = run.wait_for(lambda: probes(run).get(0), "a worker's metrics")
        run.wait_for(lambda: probe.read()[0] >= WARM_STEPS, f"{WARM_STEPS} steps")
        pids = run.workers()
        begin = processor_s(pids)
        steps_per_s = rate(probe, args.seconds)
        spent = processor_s(pids) - begin
        return steps_per_s, 1000 * spent / (steps_per_s * args.seconds)
    finally:
        run.process.send_signal(signal.SIGTERM)
        run.wait()
        shutil.rmtree(directory / "run", ignore_errors=True)


def rounds_of(args, model):
    """The results of measure() by setting, one for each round."""
    found = {every: [] for every in EVERY}
    for turn in range(args.rounds):
        order = EVERY if turn % 2 == 0 else EVERY[::-1]
        for every in order:
            with tempfile.TemporaryDirectory(prefix="lockstep-bench-") as directory:
                found[every].append(measure(pathlib.Path(directory), args, model, every))
    return found


def spread(values, digits):
    return (f"{statistics.median(values):.{digits}f} "
            f"({min(values):.{digits}f} – {max(values):.{digits}f})")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=6)
    parser.add_argument("--data", type=pathlib.Path, default=FASHION)
    args = parser.parse_args()
    found = {}
    for model in ("mlp", "cnn"):
        found[model] = rounds_of(args, model)
        for every in EVERY:
            rates, times = zip(*found[model][every])
            line = f"{model}, check_every {every}: {spread(rates, 0)} steps/s"
            line += f", {spread(times, 3)} ms a step"
            if every:
                against = found[model][0]
                line += "; ratio to none: rate " + spread(
                    [a / b[0] for a, b in zip(rates, against)], 3)
                line += ", time " + spread([a / b[1] for a, b in zip(times, against)], 3)
            print(line, flush=True)
    print(json.dumps(found))


if __name__ == "__main__":
    sys.exit(main())
