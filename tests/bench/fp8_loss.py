#!/usr/bin/env python3
"""Does a small gpt2 learn as well in fp8 as in bf16? The same job for several seeds in each precision.

    fp8_loss.py --lockstep build/release/bin/lockstep [--width 192] [--steps 300] [--seeds 1 2 3]

The text is Debian's common licences; the last twentieth of each is held out. One worker, one
thread, on the CPU. Prints the mean training loss of the last 20 steps, the evaluation loss at the
end and the processor time. Exit status 1 if a seed's evaluation loss in fp8 is more than 0.02 away
from bf16's.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

MOST_APART = 0.02
BLOCK = 64


def text(directory):
    parts = {"train": b"", "val": b""}
    for path in sorted(pathlib.Path("/usr/share/common-licenses").iterdir()):
        if not path.is_symlink():
            words = path.read_bytes()
            cut = len(words) * 19 // 20
            parts["train"] += words[:cut]
            parts["val"] += words[cut:]
    for name, words in parts.items():
        (directory / f"{name}.txt").write_bytes(words)
    return {name: len(words) for name, words in parts.items()}


def train(args, data, precision, seed):
    job = {"job": "fp8-loss", "seed": seed,
           "model": {"name": "gpt2", "n_layer": 4, "n_head": 6, "n_embd": args.width, "block": BLOCK},
           "data": {"train": {"path": str(data)}, "eval": {"path": str(data)}},
           "train": {"global_batch": 8, "slots": 1, "max_steps": args.steps, "eval_batch": 64,
                     "precision": precision, "check_every": 0},
           "optimizer": {"name": "adamw", "lr": 1e-3, "weight_decay": 0.1, "clip_norm": 1},
           "schedule": {"name": "cosine", "warmup_steps": 30, "min_lr": 1e-4},
           "checkpoint": {"every_steps": 0}, "cluster": {"device": "cpu", "workers": 1}}
    with tempfile.TemporaryDirectory() as scratch:
        path = pathlib.Path(scratch) / "job.yaml"
        path.write_text(json.dumps(job))
        run = path.with_name("run")
        before = os.times()
        done = subprocess.run([args.lockstep, "run", path, "--run-dir", run], capture_output=True,
                              text=True)
        after = os.times()
        if done.returncode != 0:
            sys.exit(f"lockstep run ended with {done.returncode}:\n{done.stderr}")
        losses = [line["loss"] for line in map(json.loads, open(run / "history.jsonl"))]
        return {"train": statistics.fmean(losses[-20:]),
                "eval": json.loads((run / "summary.json").read_text())["eval_loss"],
                "cpu_s": after.children_user - before.children_user}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lockstep", required=True, help="the program")
    parser.add_argument("--width", type=int, default=192)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3])
    parser.add_argument("--precisions", nargs="+", default=["bf16", "fp8"])
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        data = pathlib.Path(directory)
        print(f"text: {text(data)} bytes; width {args.width}, {args.steps} steps")
        found = {}
        for seed in args.seeds:
            for precision in args.precisions:
                found[precision, seed] = now = train(args, data, precision, seed)
                print(f"seed {seed} {precision:5} last 20 steps {now['train']:.4f}  evaluation "
                      f"{now['eval']:.4f}  {now['cpu_s']:.0f} s of a core", flush=True)
    if not {"bf16", "fp8"} <= set(args.precisions):
        return 0
    apart = {seed: found["fp8", seed]["eval"] - found["bf16", seed]["eval"] for seed in args.seeds}
    print("fp8 - bf16: " + ", ".join(f"{value:+.4f}" for value in apart.values()))
    return 0 if max(map(abs, apart.values())) <= MOST_APART else 1


if __name__ == "__main__":
    sys.exit(main())
