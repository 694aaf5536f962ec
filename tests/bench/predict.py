#!/usr/bin/env python3
"""Images/s of `lockstep predict` and `lockstep eval` beside a loop of PyTorch: a resnet18 with the
same weights, the same images (IDX, 32 x 32), batches of 250, one thread each.

    predict.py --bin build/release/bin [--images 1000] [--rounds 5]

Run it by the Python that `deploy/install_deps.sh --print-models-python` names. A run of one step
makes the weights. The time of both sides begins with their work and ends with the last probability.
PyTorch's side leaves out the start of the process and of its libraries; on Lockstep's side the same
command on one image measures it apart.

Sides take turns within each round, and the median of the rounds counts; the next columns are the
least and the most. Page faults, and the kernel's share of the processor time, are from the last
round, on Lockstep's side without the share of the command on one image. Ends with 1 if a
probability differs by more than 1e-5.
"""
import argparse
import json
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile
import time

import numpy
import torch
import torchvision
from safetensors.torch import load_file

SIDE, BATCH = 32, 250


def idx(path, array):
    kind = {1: b"\0\0\x08\x01", 3: b"\0\0\x08\x03"}[array.ndim]
    path.write_bytes(kind + b"".join(n.to_bytes(4, "big") for n in array.shape) + array.tobytes())


def images(directory, counts):
    directory.mkdir()
    chosen = numpy.random.default_rng(1)
    for prefix, count in counts.items():
        idx(directory / f"{prefix}-images-idx3-ubyte",
            chosen.integers(0, 256, (count, SIDE, SIDE), dtype=numpy.uint8))
        idx(directory / f"{prefix}-labels-idx1-ubyte",
            numpy.arange(count).astype(numpy.uint8) % 10)
    return directory


def net_of(directory):
    net = torchvision.models.resnet18(num_classes=10)
    net.conv1 = torch.nn.Conv2d(1, 64, 3, padding=1, bias=False)
    net.maxpool = torch.nn.Identity()
    net.load_state_dict(load_file(directory / "model.safetensors"))
    return net.eval()


def theirs(net, data, facts):
    begun = time.perf_counter()
    content = (data / "t10k-images-idx3-ubyte").read_bytes()[16:]
    pixels = torch.frombuffer(bytearray(content), dtype=torch.uint8).reshape(-1, 1, SIDE, SIDE)
    mean, std = facts["normalize"]["mean"][0], facts["normalize"]["std"][0]
    out = []
    with torch.inference_mode():
        for batch in pixels.split(BATCH):
            out.append(net((batch.float() / 255 - mean) / std).softmax(1))
    out = torch.cat(out).numpy()
    return out, time.perf_counter() - begun


def used(who):
    """Page faults, seconds in the program, seconds in the kernel."""
    usage = resource.getrusage(who)
    return numpy.array([usage.ru_minflt, usage.ru_utime, usage.ru_stime])


def ours(args, command, model, data, out):
    """The time that it took, and what it used."""
    out.unlink(missing_ok=True)
    more = ["--out", out] if command == "predict" else ["--json"]
    before, begun = used(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run([args.bin / "lockstep", command, model, data, *more, "--batch", str(BATCH),
                    "--threads", "1"], check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)
    return time.perf_counter() - begun, used(resource.RUSAGE_CHILDREN) - before


def rate_text(name, rates, usage, beside=None):
    middle, (faults, program_s, kernel_s) = statistics.median(rates), usage
    text = f"{name:18}{middle:8.1f} images/s ({min(rates):.1f} to {max(rates):.1f})"
    text += f", {middle / beside:.3f} of PyTorch's" if beside else ""
    return (text + f"; {faults:.0f} page faults, {kernel_s / (program_s + kernel_s):.1%} of the "
            "processor time in the kernel")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    parser.add_argument("--images", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as name:
        scratch = pathlib.Path(name)
        data = images(scratch / "data", {"train": 64, "t10k": args.images})
        few = images(scratch / "few", {"train": 64, "t10k": 1})
        (scratch / "job.yaml").write_text(f"""
job: bench
model: {{name: resnet18}}
data: {{train: {{path: {few}}}, eval: {{path: {few}}}}}
train: {{global_batch: 32, slots: 1, max_steps: 1}}
""")
        for words in (["run", scratch / "job.yaml", "--workers", 1, "--run-dir", scratch / "run"],
                      ["export", "model", scratch / "run", scratch / "model"]):
            subprocess.run([args.bin / "lockstep", *map(str, words)], check=True,
                           capture_output=True)
        model = scratch / "model"
        facts = json.loads((model / "lockstep.json").read_text())
        net = net_of(model)
        torch_rates, rates, usage = [], {"predict": [], "eval": []}, {}
        for _ in range(args.rounds):
            for command, found in rates.items():
                start_s, start_usage = ours(args, command, model, few, scratch / "few.npy")
                whole_s, whole_usage = ours(args, command, model, data, scratch / "all.npy")
                usage[command] = whole_usage - start_usage
                found.append((args.images - 1) / (whole_s - start_s))
                if command == "predict":
                    probabilities = numpy.load(scratch / "all.npy")
            before = used(resource.RUSAGE_SELF)
            wanted, seconds = theirs(net, data, facts)
            torch_usage = used(resource.RUSAGE_SELF) - before
            torch_rates.append(args.images / seconds)
    middle = statistics.median(torch_rates)
    for command, found in rates.items():
        print(rate_text(f"lockstep {command}", found, usage[command], middle))
    print(rate_text("PyTorch", torch_rates, torch_usage))
    difference = float(numpy.abs(probabilities - wanted).max())
    print(f"probabilities differ by {difference:.2g}")
    return 0 if difference <= 1e-5 else 1


if __name__ == "__main__":
    sys.exit(main())
