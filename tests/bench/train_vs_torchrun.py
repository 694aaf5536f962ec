#!/usr/bin/env python3
"""Training against torchrun + gloo DDP: same model, data, ranks and threads, in turn.

    train_vs_torchrun.py --bench build/dev/bin/bench_train --data DIR [--python PYTHON]

PYTHON needs torch and numpy. Both sides are measured in turn, several rounds, so that whatever
else the machine does hits both; the ratio is that of the medians, with the range of the rounds'
own ratios behind it.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
TARGETS = {("mlp", 128): 2.0, ("mlp", 32): 4.0, ("cnn", 128): 1.1}  # DESIGN, section 13


def last_json(command):
    environment = dict(os.environ, OMP_NUM_THREADS="1")
    result = subprocess.run(command, env=environment, capture_output=True, text=True)
    for line in reversed(result.stdout.splitlines()):
        if line.startswith("{"):
            return json.loads(line)
    sys.exit(f"{' '.join(command)} failed:\n{result.stdout}{result.stderr}")


def steps_for(model, batch):
    return (600 if model == "cnn" else 2000) if batch >= 128 else (1500 if model == "cnn" else 4000)


def measure(args, model, batch):
    common = ["--data", args.data, "--model", model, "--global-batch", str(batch),
              "--steps", str(args.steps or steps_for(model, batch))]
    ours = [args.bench, "--ranks", str(args.ranks)] + common
    peer = [args.python, "-m", "torch.distributed.run", "--standalone",
            "--nproc-per-node", str(args.ranks), os.path.join(HERE, "peer_ddp.py")] + common
    rounds = [(last_json(ours)["images_per_second"], last_json(peer)["images_per_second"])
              for _ in range(args.rounds)]
    a, b = (statistics.median(side) for side in zip(*rounds))
    ratios = sorted(x / y for x, y in rounds)
    target = TARGETS.get((model, batch))
    verdict = "" if target is None else f"  target {target}: {'met' if a / b >= target else 'MISSED'}"
    print(f"{model:4} batch {batch:4}  ours {a:9.0f}  torchrun {b:9.0f} images/s  "
          f"ratio {a / b:5.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f}){verdict}", flush=True)
    return {"model": model, "batch": batch, "ours": a, "torchrun": b, "ratio": a / b,
            "rounds": rounds}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bench", required=True, help="the program bench_train")
    parser.add_argument("--data", default="/usr/share/datasets/fashion-mnist")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=0, help="timed steps; 0: by model")
    parser.add_argument("--models", nargs="+", default=["mlp", "cnn"])
    parser.add_argument("--batches", nargs="+", type=int, default=[128, 32])
    parser.add_argument("--json", help="also write the numbers to this file")
    args = parser.parse_args()
    results = [measure(args, m, b) for m in args.models for b in args.batches]
    if args.json:
        with open(args.json, "w") as f:
            json.dump(results, f, indent=1)


if __name__ == "__main__":
    main()
