#!/usr/bin/env python3
"""The loader alone, beside others on the same files, in turns.

    loader.py images|tokens|resume|jpeg|masks --bench build/release/bin/bench_loader
              --torch-python PYTHON [--rounds 5] [--core one|all]

images: batches of 128 from a CIFAR-10 file of 50,000 samples of 3 KB, as bytes.
tokens: batches of 16 sequences of 1,024 tokens from 100 million uint16.
jpeg: 500 x 375 pixels, about 95 KB each, in a directory of classes: any part of an image, scaled to
224 x 224, mirrored or not, as bytes. PYTHON also needs Pillow and numpy.
masks: the same images, each with a palette PNG of 21 classes, cut and mirrored alike.
resume: from nothing to the first batch in the middle of an epoch of 1e6, 1e8 and 1e10 samples.
peer_venvs.py makes the other peers the first time; one that cannot be had is a row `not measured:
why`. loader_peers.py says what each does.

Rates are samples per second of processor time, of all threads. All run on one core, the last that
this process may use: that is the rate of a core. With --core all the system places them, and waking
a thread on another core counts, too. Prints the median of the rounds, the range, and the ratio of
medians to the first row.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

import peer_venvs

HERE = pathlib.Path(__file__).resolve().parent
DEADLINE_S = 600
SAMPLES, SIDE, CLASSES = 50_000, 32, 10
TOKENS, VOCAB, BLOCK = 100_000_000, 50_000, 1024
MEMORY_GIB = 16  # of a list of indices
RESUMED = (10**6, 10**8, 10**10)


def lines(command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True,
                          timeout=DEADLINE_S)
    if done.returncode != 0:
        sys.exit(f"{command} ended with {done.returncode}:\n{done.stderr[-2000:]}")
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def make_images(directory):
    """The five training files and the test file, all with the same content."""
    record = 1 + 3 * SIDE * SIDE
    content = bytearray(os.urandom(SAMPLES // 5 * record))
    content[::record] = bytes(i % CLASSES for i in range(SAMPLES // 5))
    for name in [f"data_batch_{i}" for i in range(1, 6)] + ["test_batch"]:
        (directory / f"{name}.bin").write_bytes(content)


def make_tokens(directory):
    import array
    import random
    rng = random.Random(1)
    piece = array.array("H", (rng.randrange(VOCAB) for _ in range(1_000_000)))
    path = directory / "train.bin"
    with open(path, "wb") as file:
        for _ in range(TOKENS // len(piece)):
            file.write(piece.tobytes())
    return path


def rate(line):
    return line["samples"] / line["cpu_s"]


def compare(ways, rounds):
    """`ways`: name -> a function of one round's rates, or why there is none. The ways take
    turns."""
    rates = {name: way if isinstance(way, str) else [] for name, way in ways.items()}
    for round_ in range(rounds):
        for name, way in ways.items():
            if not isinstance(way, str):
                rates[name].append(statistics.median(way()))
            print(f"\rround {round_ + 1} of {rounds}: {name:<40}", end="", file=sys.stderr)
    print(file=sys.stderr)
    return rates


def table(rates, unit):
    first = statistics.median(next(iter(rates.values())))
    print(f"| | {unit} | ratio |\n|---|---|---|")
    for name, values in rates.items():
        if isinstance(values, str):
            print(f"| {name} | not measured: {values} | |")
            continue
        median = statistics.median(values)
        print(f"| {name} | {median:,.0f} ({min(values):,.0f} to {max(values):,.0f}) "
              f"| {first / median:.2f} |")


def interpreter(args, name):
    """A peer's interpreter and None, or None and why there is none."""
    if name != "torch":
        return peer_venvs.make(name)
    if args.torch_python is None:
        return None, "no --torch-python given"
    return args.torch_python, None


def peer(args, name, which, path):
    python, why = interpreter(args, name)
    if python is None:
        return why
    return lambda: [rate(line) for line in lines([python, HERE / "loader_peers.py", which, path])]


def ours(args, path, *words):
    return lambda: [rate(line) for line in lines([args.bench, "epochs", "--data", path, *words])]


def images(args, directory):
    make_images(directory)
    rates = compare({
        "Lockstep, bytes": ours(args, directory),
        "Lockstep, normalised floats": ours(args, directory, "--form", "floats"),
        "torch DataLoader, a sample at a time": peer(args, "torch", "torch", directory),
        "torch DataLoader, a batch at a time": peer(args, "torch", "torch_batched",
                                                      directory),
        "Grain": peer(args, "grain", "grain", directory)}, args.rounds)
    table(rates, "samples of 3 KB a core-second")
    copies = lines([args.bench, "epochs", "--data", directory, "--epochs", 5])
    print("\nlimit: memcpy of the same bytes, in order and in the epoch's: " + ", ".join(
        f"{statistics.median(line['samples'] / line[which] for line in copies):,.0f}"
        for which in ("copy_s", "copy_shuffled_s")) + " a second")


def tokens(args, directory):
    path = make_tokens(directory)
    words = ("--format", "tokens", "--block", BLOCK, "--batch", 16)
    rates = compare({"Lockstep": ours(args, path, *words),
                     "torch, random windows of a memmap": peer(args, "torch", "torch_tokens",
                                                              path)}, args.rounds)
    table(rates, f"sequences of {BLOCK:,} tokens a core-second")
    line = lines([args.bench, "epochs", "--data", path, *words])[-1]
    written = 2 * 8 * BLOCK  # inputs and labels, int64
    print(f"\nLockstep: {line['sample_bytes'] + written:,} bytes are read and written a sequence")


def jpeg(args, directory):
    if args.torch_python is None:
        sys.exit("the images are made with Pillow: name --torch-python")
    subprocess.run([args.torch_python, HERE / "loader_peers.py", "make_jpeg", directory], check=True)
    files = [path.stat().st_size for path in directory.rglob("*.jpg")]
    words = ("--transforms", "random_resized_crop=224", "flip", "normalize", "--batch", 32)
    rates = compare({
        "Lockstep": ours(args, directory, *words),
        "torch DataLoader, Pillow": peer(args, "torch", "torch_jpeg", directory),
        "webdataset, Pillow": peer(args, "webdataset", "webdataset_jpeg", directory),
        "DALI, CPU, fused crop": peer(args, "dali", "dali_jpeg", directory),
        "spdl-io, FFmpeg": peer(args, "spdl", "spdl_jpeg", directory)}, args.rounds)
    table(rates, "images a core-second")
    print(f"\n{len(files)} files of {statistics.mean(files) / 1000:.0f} KB on average")


def masks(args, directory):
    if args.torch_python is None:
        sys.exit("the images are made with Pillow: name --torch-python")
    subprocess.run([args.torch_python, HERE / "loader_peers.py", "make_masks", directory], check=True)
    words = ("--transforms", "random_resized_crop=224", "flip", "normalize", "--batch", 32)
    rates = compare({
        "Lockstep": ours(args, directory, "--targets", "masks", *words),
        "Lockstep, images alone": ours(args, directory / "images", *words),
        "torch DataLoader, Pillow": peer(args, "torch", "torch_masks", directory),
        "torch DataLoader, images alone": peer(args, "torch", "torch_jpeg", directory / "images")},
        args.rounds)
    table(rates, "images a core-second")


def their_resume(args, name, samples, memory_gib):
    """Seconds, and GiB if the peer tells them. `memory_gib`: the memory that it would take."""
    python, why = interpreter(args, name)
    if python is None:
        return f"not measured: {why}"
    if memory_gib > MEMORY_GIB:
        return f"not measured: takes {memory_gib} GiB"
    runs = [lines([python, HERE / "loader_peers.py", f"{name}_resume", samples])[-1] for _ in range(3)]
    text = f"{statistics.median(run['wall_s'] for run in runs):.3g} s"
    growth = max(run.get("growth_kib", 0) for run in runs)
    return text + (f", {growth / 2**20:.2g} GiB" if growth else "")


def resume(args, directory):
    print("| samples | Lockstep, first batch | memory | torch RandomSampler, first index "
          "| MosaicML Streaming, order of the epoch |\n|---|---|---|---|---|")
    for samples in RESUMED:
        runs = [lines([args.bench, "resume", "--samples", samples])[-1] for _ in range(args.rounds)]
        us = [run["median_us"] for run in runs]
        gib = samples * 8 >> 30
        print(f"| {samples:,} | {statistics.median(us):.0f} us ({min(us):.0f} to {max(us):.0f}) "
              f"| {max(run['growth_kib'] for run in runs)} KiB "
              f"| {their_resume(args, 'torch', samples, gib)} "
              f"| {their_resume(args, 'mosaic', samples, gib)} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("images", "tokens", "resume", "jpeg", "masks"))
    parser.add_argument("--bench", required=True, help="bench_loader (LOCKSTEP_BENCH=ON)")
    parser.add_argument("--torch-python", help="interpreter that has torch and numpy")
    parser.add_argument("--core", choices=("one", "all"), default="one")
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    if args.core == "one":
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})  # and of all that it starts
    with tempfile.TemporaryDirectory() as name:
        {"images": images, "tokens": tokens, "resume": resume, "jpeg": jpeg,
         "masks": masks}[args.what](args, pathlib.Path(name))


if __name__ == "__main__":
    main()
