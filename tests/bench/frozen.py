#!/usr/bin/env python3
"""The savings of frozen layers (optimizer.groups, freeze): resnet18 in turns with nothing frozen,
the first half frozen, and all but the last layer frozen; next to it the same in PyTorch.

    frozen.py --lockstep build/release/bin/lockstep [--data DIR] [--python PYTHON] [--rounds 5]

PYTHON needs torch and numpy. One worker and one thread on either side. Prints milliseconds a step
(median of the rounds, least and most), its ratio to the run with nothing frozen, and the worker's
largest resident memory.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
# The patterns for Lockstep, and the peer's children (nn.Sequential) that are frozen.
FROZEN = {"nothing": ([], 0),
          "conv1 to layer2": (["conv1.*", "bn1.*", "layer1.*", "layer2.*"], 7),
          "all but fc": (["conv1.*", "bn1.*", "layer?.*"], 13)}


def our_step(args, name, directory):
    data = directory / "data"  # has no files for the evaluation
    data.mkdir()
    for file in pathlib.Path(args.data).glob("train-*"):
        (data / file.name).symlink_to(file)
    job = {"job": "frozen", "model": {"name": "resnet18"},
           "data": {"train": {"path": str(data)}, "cache_dir": str(directory / "cache")},
           "train": {"global_batch": args.batch, "slots": 1, "max_steps": args.steps, "epochs": 50},
           "optimizer": {"name": "adamw", "lr": 0.001,
                         "groups": [{"match": match, "freeze": True} for match in FROZEN[name][0]]},
           "checkpoint": {"every_steps": 0}, "cluster": {"device": "cpu"}}
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
    process = subprocess.run([args.python, HERE / "frozen.py", "--peer", name, "--data", args.data,
                              "--batch", str(args.batch), "--steps", str(args.steps)],
                             capture_output=True, text=True)
    if process.returncode != 0:
        sys.exit(process.stderr)
    return json.loads(process.stdout)


def peer(args):
    import resource
    import time

    import torch
    from peer_models import loss_of, make_model, training_data

    torch.set_num_threads(1)
    x, labels = training_data("resnet18", args.data, 0)
    model = make_model("resnet18")
    for key, parameter in model.named_parameters():
        parameter.requires_grad_(int(key.split(".")[0]) >= FROZEN[args.peer][1])
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-3,
                                  fused=True)
    times = []
    for step in range(args.steps):
        rows = slice(step * args.batch, (step + 1) * args.batch)
        begin = time.perf_counter()
        optimizer.zero_grad()
        loss_of("resnet18", model(x[rows]), labels[rows]).backward()
        optimizer.step()
        times.append(time.perf_counter() - begin)
    print(json.dumps([1000 * statistics.mean(times[1:]),
                      resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024]))


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lockstep", type=pathlib.Path, help="the program")
    parser.add_argument("--data", default="/usr/share/datasets/fashion-mnist")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--peer", choices=FROZEN, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.peer:
        return peer(args)
    if not args.lockstep:
        parser.error("--lockstep is needed")
    seen = {name: ([], []) for name in FROZEN}
    for round_ in range(args.rounds):
        for name, (ours, theirs) in seen.items():
            print(f"round {round_ + 1}: {name}", file=sys.stderr)
            with tempfile.TemporaryDirectory() as directory:
                ours.append(our_step(args, name, pathlib.Path(directory)))
            theirs.append(peer_step(args, name))
    for side, who in enumerate(("Lockstep", "PyTorch")):
        whole = statistics.median(ms for ms, _ in seen["nothing"][side])
        for name, sides in seen.items():
            times, memory = zip(*sides[side])
            ms = statistics.median(times)
            print(f"{who:9} {name:16} {ms:8.1f} ms ({min(times):.1f} to {max(times):.1f})  "
                  f"ratio {ms / whole:.2f}  {statistics.median(memory):6.0f} MB")
    return None


if __name__ == "__main__":
    main()
