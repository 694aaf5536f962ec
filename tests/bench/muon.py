#!/usr/bin/env python3
"""The cost of a step with Muon: a gpt2 in turns with muon and with adamw, beside the same in
PyTorch (torch.optim.Muon for the matrices of the blocks, AdamW for the rest).

    muon.py --lockstep build/release/bin/lockstep [--python PYTHON] [--rounds 5]

PYTHON needs torch. One worker and one thread on either side. Prints milliseconds a step (median of
the rounds, least and most), and the worker's largest resident memory.
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

HERE = pathlib.Path(__file__).resolve().parent
OPTIMIZERS = ("adamw", "muon")
VOCABULARY = 256


def our_step(args, name, directory):
    data = directory / "text.txt"
    words = random.Random(1).choices(["the ", "rank ", "sums ", "every ", "slot "],
                                     k=args.batch * args.steps * args.block)
    data.write_text("".join(words))
    job = {"job": "muon", "model": {"name": "gpt2", "size": args.size, "block": args.block,
                                    "vocab": VOCABULARY},
           "data": {"train": {"path": str(data)}},
           "train": {"global_batch": args.batch, "slots": 1, "max_steps": args.steps, "epochs": 50},
           "optimizer": {"name": name, "lr": 0.001}, "checkpoint": {"every_steps": 0},
           "cluster": {"device": "cpu"}}
    path = directory / "job.yaml"
    path.write_text(json.dumps(job))
    run = directory / "run"
    process = subprocess.Popen([args.lockstep, "run", path, "--workers", "1", "--run-dir", run],
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    said = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        sys.exit(f"{name}: lockstep ended with status {status}:\n{said}")
    rate = json.loads((run / "summary.json").read_text())["samples_per_second"]
    return 1000 * args.batch / rate, usage.ru_maxrss / 1024  # of all processes, the largest


def peer_step(args, name):
    process = subprocess.run([args.python, HERE / "muon.py", "--peer", name, "--size", args.size,
                              "--block", str(args.block), "--batch", str(args.batch),
                              "--steps", str(args.peer_steps)],
                             capture_output=True, text=True)
    if process.returncode != 0:
        sys.exit(process.stderr)
    return json.loads(process.stdout)


def peer(args):
    import resource
    import time

    import torch
    from fused_gpt2 import fused_gpt2

    torch.set_num_threads(1)
    torch.manual_seed(1)
    model = fused_gpt2(args.size, args.block, VOCABULARY)
    hidden, others = [], []
    for key, parameter in model.named_parameters():
        is_hidden = args.peer == "muon" and parameter.ndim == 2 and key not in ("wte.weight",
                                                                                "wpe.weight")
        (hidden if is_hidden else others).append(parameter)
    optimizers = [torch.optim.AdamW(others, lr=1e-3, weight_decay=0.1, fused=True)]
    if hidden:
        optimizers.append(torch.optim.Muon(hidden, lr=1e-3, adjust_lr_fn="match_rms_adamw"))
    times = []
    for _ in range(args.steps):
        tokens = torch.randint(VOCABULARY, (args.batch, args.block + 1))
        begin = time.perf_counter()
        for optimizer in optimizers:
            optimizer.zero_grad()
        logits = model(tokens[:, :-1])
        torch.nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten()).backward()
        for optimizer in optimizers:
            optimizer.step()
        times.append(time.perf_counter() - begin)
    print(json.dumps([1000 * statistics.mean(times[1:]),
                      resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024]))


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lockstep", type=pathlib.Path, help="the program")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--size", default="d4")
    parser.add_argument("--block", type=int, default=128)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--peer-steps", type=int, default=3, help="of PyTorch; the first one is "
                        "left out")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--peer", choices=OPTIMIZERS, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.peer:
        return peer(args)
    if not args.lockstep:
        parser.error("--lockstep is needed")
    seen = {name: ([], []) for name in OPTIMIZERS}
    for round_ in range(args.rounds):
        for name, (ours, theirs) in seen.items():
            print(f"round {round_ + 1}: {name}", file=sys.stderr)
            with tempfile.TemporaryDirectory() as directory:
                ours.append(our_step(args, name, pathlib.Path(directory)))
            theirs.append(peer_step(args, name))
    for side, who in enumerate(("Lockstep", "PyTorch")):
        for name, sides in seen.items():
            times, memory = zip(*sides[side])
            print(f"{who:9} {name:6} {statistics.median(times):8.1f} ms "
                  f"({min(times):.1f} to {max(times):.1f})  {statistics.median(memory):6.0f} MB")
    return None


if __name__ == "__main__":
    main()
