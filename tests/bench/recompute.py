#!/usr/bin/env python3
"""The savings and the cost of model.recompute: a gpt2 in turns without and with it.

    recompute.py --lockstep build/release/bin/lockstep [--size d6] [--rounds 5]

One worker and one thread. Prints milliseconds a step and the worker's largest resident memory
(medians of the rounds, least and most), and the hash of the weights, which must be the same for
all.
"""
import argparse
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile


def measure(args, recompute, directory):
    data = directory / "text.txt"
    words = random.Random(1).choices(["the ", "rank ", "sums ", "every ", "slot "],
                                     k=args.batch * args.steps * args.block)
    data.write_text("".join(words))
    job = {"job": "recompute", "model": {"name": "gpt2", "size": args.size, "block": args.block,
                                         "vocab": 256, "dropout": 0.1, "recompute": recompute},
           "data": {"train": {"path": str(data)}},
           "train": {"global_batch": args.batch, "slots": 1, "max_steps": args.steps, "epochs": 50},
           "optimizer": {"name": "adamw", "lr": 0.001}, "checkpoint": {"every_steps": 0},
           "cluster": {"device": "cpu"}}
    path = directory / "job.yaml"
    path.write_text(json.dumps(job))
    run = directory / "run"
    process = subprocess.Popen([args.lockstep, "run", path, "--workers", "1", "--run-dir", run],
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    said = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        sys.exit(f"lockstep ended with status {status}:\n{said}")
    summary = json.loads((run / "summary.json").read_text())
    return (1000 * args.batch / summary["samples_per_second"],
            usage.ru_maxrss / 1024,  # of all processes, the largest
            summary["weights_sha256"])


def spread(values):
    return f"{statistics.median(values):8.0f} ({min(values):.0f} to {max(values):.0f})"


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lockstep", type=pathlib.Path, required=True, help="the program")
    parser.add_argument("--size", default="d6")
    parser.add_argument("--block", type=int, default=256)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    seen = {False: [], True: []}
    for round_ in range(args.rounds):
        for recompute, found in seen.items():
            print(f"round {round_ + 1}: recompute {recompute}", file=sys.stderr)
            with tempfile.TemporaryDirectory() as directory:
                found.append(measure(args, recompute, pathlib.Path(directory)))
    for recompute, found in seen.items():
        times, memory, hashes = zip(*found)
        print(f"recompute {str(recompute):5}  {spread(times)} ms  {spread(memory)} MB  "
              f"{' '.join(sorted(set(hashes)))}")


if __name__ == "__main__":
    main()
