#!/usr/bin/env python3
"""Training against torchrun + gloo DDP: same model, data, ranks and threads, in turn.

    train_vs_torchrun.py --bench build/dev/bin/bench_train --data DIR [--python PYTHON]

PYTHON needs torch and numpy. Measures both sides in turn, several rounds, so that the machine's
other work hits both. Prints the ratio of the medians, and then the range of the rounds' own ratios.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
TARGETS = {("mlp", 128): 2.0, ("mlp", 32): 4.0, ("cnn", 128): 1.1,
           ("resnet18", 128): 1.0}
BATCHES = {"mlp": [128, 32], "cnn": [128, 32], "resnet18": [128], "gpt2": [4]}
STEPS = {("mlp", 128): 2000, ("mlp", 32): 4000, ("cnn", 128): 600, ("cnn", 32): 1500,
         ("resnet18", 128): 8, ("gpt2", 4): 8}  # timed steps of one round
WARMUP = {"resnet18": 2, "gpt2": 2}


def last_json(command):
    environment = dict(os.environ, OMP_NUM_THREADS="1")
    result = subprocess.run(command, env=environment, capture_output=True, text=True)
    for line in reversed(result.stdout.splitlines()):
        if line.startswith("{"):
            return json.loads(line)
    sys.exit(f"{' '.join(command)} failed:\n{result.stdout}{result.stderr}")


def measure(args, model, batch):
    data = args.text if model == "gpt2" else args.data
    common = ["--data", data, "--model", model, "--global-batch", str(batch),
              "--steps", str(args.steps or STEPS.get((model, batch), 100)),
              "--warmup-steps", str(WARMUP.get(model, 50))]
    ours = [args.bench, "--ranks", str(args.ranks)] + common
    peer = [args.python, "-m", "torch.distributed.run", "--standalone",
            "--nproc-per-node", str(args.ranks), os.path.join(HERE, "peer_ddp.py")] + common
    rounds = [(last_json(ours)["samples_per_second"], last_json(peer)["samples_per_second"])
              for _ in range(args.rounds)]
    a, b = (statistics.median(side) for side in zip(*rounds))
    ratios = sorted(x / y for x, y in rounds)
    target = TARGETS.get((model, batch))
    verdict = "" if target is None else f"  target {target}: {'met' if a / b >= target else 'MISSED'}"
    print(f"{model:8} batch {batch:4}  ours {a:9.1f}  torchrun {b:9.1f} samples/s  "
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
    parser.add_argument("--models", nargs="+", default=["mlp", "cnn", "resnet18"],
                        choices=list(BATCHES))
    parser.add_argument("--batches", nargs="+", type=int, help="global; default: by model")
    parser.add_argument("--text", help="text file for gpt2")
    parser.add_argument("--json", help="also write the numbers to this file")
    args = parser.parse_args()
    if "gpt2" in args.models and not args.text:
        parser.error("gpt2 learns from text: name a file with --text")
    results = [measure(args, m, b) for m in args.models for b in args.batches or BATCHES[m]]
    if args.json:
        with open(args.json, "w") as f:
            json.dump(results, f, indent=1)


if __name__ == "__main__":
    main()
