#!/usr/bin/env python3
"""Loss curves beside PyTorch's: `lockstep run` and a plain PyTorch loop train the same job.

    loss_curves.py --lockstep build/dev/bin/lockstep --model gpt2 --out DIR [--python PYTHON]

For every seed both start from the same weights and see the same batches in the same order, so only
rounding is left between the two. PyTorch's own noise lies between two seeds. Plots both
(DIR/MODEL.png) and writes them (DIR/MODEL.json). Exit status 1 if the means of the last fifth are
further apart than PyTorch's own seeds are (one standard deviation).

Needs torch, numpy, xxhash and matplotlib (deploy/install_deps.sh --for bench).
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

import torch
import xxhash

from peer_models import SIZES, gpt2, loss_of, losses, make_model, training_data
from order import MASK, EpochOrder  # beside the golden models, which peer_models has found

SLOTS = 2
JOBS = {  # model settings, samples a step, learning rate
    "gpt2": ("{name: gpt2, size: %s, block: %d}", 8, 3e-4),
    "resnet18": ("{name: resnet18}", 64, 1e-3),
}
DECAY = 0.01


def licences(directory):
    """English text that every Debian has: its common licences, one after another."""
    source = "/usr/share/common-licenses"
    path = os.path.join(directory, "licences.txt")
    with open(path, "wb") as out:
        for name in sorted(os.listdir(source)):
            if not os.path.islink(os.path.join(source, name)):
                with open(os.path.join(source, name), "rb") as f:
                    out.write(f.read())
    return path


def lockstep_losses(args, seed):
    settings, batch, lr = JOBS[args.model]
    model = settings % (args.size, args.block) if args.model == "gpt2" else settings
    with tempfile.TemporaryDirectory() as scratch:
        job = os.path.join(scratch, "job.yaml")
        with open(job, "w") as f:
            f.write(f"job: curve\nseed: {seed}\nmodel: {model}\n"
                    f"data: {{train: {{path: {args.data}}}, eval: {{path: ''}}}}\n"
                    f"train: {{global_batch: {batch}, max_steps: {args.steps}, slots: {SLOTS}}}\n"
                    f"optimizer: {{name: adamw, lr: {lr}, weight_decay: {DECAY}}}\n"
                    f"cluster: {{workers: {SLOTS}, device: cpu}}\n")
        run = os.path.join(scratch, "run")
        result = subprocess.run([args.lockstep, "run", job, "--run-dir", run],
                                capture_output=True, text=True)
        if result.returncode != 0:
            sys.exit(f"lockstep run ended with {result.returncode}:\n{result.stderr}")
        with open(os.path.join(run, "history.jsonl")) as f:
            return [entry["loss"] for entry in map(json.loads, f) if "loss" in entry]


def fingerprint(args):
    command = [args.lockstep, "data", "inspect", args.data, "--json"]
    command += ["--block", str(args.block)] if args.model == "gpt2" else []
    found = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    return found["splits"][0]["fingerprint"]


def torch_losses(args, seed, data, name):
    """One process that works as SLOTS ranks of DDP: each computes its part of the batch, then a
    mean."""
    _, batch, lr = JOBS[args.model]
    x, y = data
    model = make_model(args.model, args.size, args.block)
    if args.model == "gpt2":
        gpt2.initialise(model, SIZES[args.size][0], seed)
    else:
        losses.initialise(model, seed)
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr, weight_decay=DECAY, fused=True)
    order, curve = None, []
    steps_an_epoch = len(x) // batch
    for step in range(args.steps):
        if step % steps_an_epoch == 0:
            digest = xxhash.xxh3_128_intdigest(name.encode())
            order = EpochOrder(seed, step // steps_an_epoch, (digest & MASK, digest >> 64), len(x))
        first = step % steps_an_epoch * batch
        chosen = torch.tensor([order.at(first + i) for i in range(batch)])
        optimizer.zero_grad()
        total = 0.0
        for part in chosen.chunk(SLOTS):
            loss = loss_of(args.model, model(x[part]), y[part]) * len(part) / batch
            loss.backward()
            total += loss.item()
        optimizer.step()
        curve.append(total)
    return curve


def verdict(curves):
    """The means of the last fifth of each seed, and whether the two sides agree within the
    noise."""
    tail = max(1, len(curves["torch"][0]) // 5)
    ends = {side: [statistics.fmean(curve[-tail:]) for curve in curves[side]] for side in curves}
    noise = statistics.stdev(ends["torch"])
    apart = abs(statistics.fmean(ends["lockstep"]) - statistics.fmean(ends["torch"]))
    same_seed = max(abs(a - b) for ours, theirs in zip(curves["lockstep"], curves["torch"])
                    for a, b in zip(ours, theirs))
    return {"ends": ends, "noise": noise, "apart": apart, "largest_at_same_seed": same_seed,
            "within_noise": apart <= noise}


def plot(args, curves, found, path):
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot
    figure, axes = pyplot.subplots(figsize=(8, 4.5), constrained_layout=True)
    steps = range(1, args.steps + 1)
    for side, colour, style in (("torch", "tab:orange", "-"), ("lockstep", "tab:blue", "--")):
        columns = list(zip(*curves[side]))
        axes.fill_between(steps, [min(c) for c in columns], [max(c) for c in columns],
                          color=colour, alpha=0.2, linewidth=0)
        axes.plot(steps, [statistics.fmean(c) for c in columns], style, color=colour,
                  label={"torch": "PyTorch", "lockstep": "Lockstep"}[side])
    axes.set(xlabel="step", ylabel="training loss",
             title=f"{args.model}: mean and range of {len(args.seeds)} seeds; ends "
                   f"{found['apart']:.4f} apart, PyTorch's own noise {found['noise']:.4f}")
    axes.legend()
    axes.grid(alpha=0.3)
    figure.savefig(path, dpi=120)


def parse():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lockstep", required=True, help="the program lockstep")
    parser.add_argument("--model", choices=list(JOBS), required=True)
    parser.add_argument("--data", help="gpt2: a text file, by default Debian's common licences; "
                        "else a directory of IDX files, by default Fashion-MNIST")
    parser.add_argument("--size", default="d12", choices=list(SIZES), help="gpt2")
    parser.add_argument("--block", type=int, default=128, help="gpt2: tokens of a sequence")
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3])
    parser.add_argument("--out", required=True, help="directory of the plot and the numbers")
    args = parser.parse_args()
    if len(args.seeds) < 2:
        parser.error("noise between seeds needs two of them: --seeds 1 2")
    os.makedirs(args.out, exist_ok=True)
    if not args.data:
        args.data = licences(args.out) if args.model == "gpt2" else "/usr/share/datasets/fashion-mnist"
    return args


def main():
    args = parse()
    torch.set_num_threads(1)
    data = training_data(args.model, args.data, args.block)
    name = fingerprint(args)
    curves = {"lockstep": [], "torch": []}
    for seed in args.seeds:
        for side in curves:
            start = time.monotonic()
            curves[side].append(lockstep_losses(args, seed) if side == "lockstep"
                                else torch_losses(args, seed, data, name))
            print(f"seed {seed} {side:8} {args.steps} steps in {time.monotonic() - start:.0f} s: "
                  f"loss {curves[side][-1][0]:.4f} to {curves[side][-1][-1]:.4f}", flush=True)
    found = verdict(curves)
    settings = {k: v for k, v in vars(args).items() if k not in ("lockstep", "out", "data")}
    with open(os.path.join(args.out, f"{args.model}.json"), "w") as f:
        json.dump({"torch": torch.__version__, **settings, **found, "curves": curves}, f)
    plot(args, curves, found, os.path.join(args.out, f"{args.model}.png"))
    print(f"ends {found['apart']:.5f} apart, PyTorch's own noise {found['noise']:.5f}, largest "
          f"difference at the same seed {found['largest_at_same_seed']:.5f}: "
          f"{'within' if found['within_noise'] else 'NOT within'} the noise")
    return 0 if found["within_noise"] else 1


if __name__ == "__main__":
    sys.exit(main())
