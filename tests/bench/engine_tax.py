#!/usr/bin/env python3
"""The cost of the engine against bare LibTorch loops with the same kernels.

    engine_tax.py --bench build/dev/bin/bench_train [--data DIR]

  tax          one rank of the engine against one bare loop: how much longer a step takes
  efficiency   two ranks against twice the slower of two bare loops that run at the same time, each
               with half the batch: what communication and the engine leave of two processors

Both sides in turn, several rounds; medians, and the range of the rounds' own values.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys

STEPS = {("mlp", 128): 2000, ("cnn", 128): 500, ("resnet18", 128): 5}
WARMUP = {"resnet18": 1}
TAX_LIMIT = 0.02
EFFICIENCY = {"mlp": 0.85, "cnn": 0.95, "resnet18": 0.95}


def start(args, model, batch, *options):
    command = [args.bench, "--data", args.data, "--model", model, "--global-batch", str(batch),
               "--steps", str(args.steps or STEPS[model, args.batch]),
               "--warmup-steps", str(WARMUP.get(model, 50)), *options]
    environment = dict(os.environ, OMP_NUM_THREADS="1")
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)


def rates(*processes):
    answers = []
    for process in processes:
        text = process.communicate()[0]
        if process.returncode != 0:
            sys.exit(f"{' '.join(process.args)} ended with {process.returncode}")
        answers.append(json.loads(text.splitlines()[-1])["samples_per_second"])
    return answers


def spread(values):
    return f"{statistics.median(values):.3f} ({min(values):.3f} to {max(values):.3f})"


def measure(args, model):
    taxes, efficiencies = [], []
    for _ in range(args.rounds):
        bare, = rates(start(args, model, args.batch, "--bare"))
        engine, = rates(start(args, model, args.batch, "--ranks", "1"))
        taxes.append(bare / engine - 1)
        half = args.batch // 2
        two_bare = rates(start(args, model, half, "--bare"), start(args, model, half, "--bare"))
        two_ranks, = rates(start(args, model, args.batch, "--ranks", "2"))
        efficiencies.append(two_ranks / (2 * min(two_bare)))
    tax, efficiency = statistics.median(taxes), statistics.median(efficiencies)
    print(f"{model:8} batch {args.batch}  tax {spread(taxes)}, at most {TAX_LIMIT}: "
          f"{'met' if tax <= TAX_LIMIT else 'MISSED'}  efficiency {spread(efficiencies)}, at least "
          f"{EFFICIENCY[model]}: {'met' if efficiency >= EFFICIENCY[model] else 'MISSED'}",
          flush=True)
    return {"model": model, "batch": args.batch, "taxes": taxes, "efficiencies": efficiencies}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bench", required=True, help="the program bench_train")
    parser.add_argument("--data", default="/usr/share/datasets/fashion-mnist")
    parser.add_argument("--models", nargs="+", default=list(EFFICIENCY), choices=list(EFFICIENCY))
    parser.add_argument("--batch", type=int, default=128, help="global")
    parser.add_argument("--steps", type=int, default=0, help="timed steps; 0: by model")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", help="also write the numbers to this file")
    args = parser.parse_args()
    results = [measure(args, model) for model in args.models]
    if args.json:
        with open(args.json, "w") as f:
            json.dump(results, f, indent=1)


if __name__ == "__main__":
    main()
