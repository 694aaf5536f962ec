#!/usr/bin/env python3
"""A trainer whose data come from a slow server: how long it waits, and what the cache saves.

    slow_source.py [--images 240] [--epochs 3] [--only wait,policies]

wait: resnet18 on JPEG files from an HTTP server that takes five and a half times the trainer's own
time to send them all. A trainer that only fetches waits for 82 % of the time, as in a published
case. Prints the share of the time in steps in which the trainer waits for data, by epoch: without
cache and read-ahead; with read-ahead only; and with the cache. Before the first step the trainer
looks at every image once, for the index: that fetches all of them, too.

policies: how many of an epoch's samples the cache has, by its size and policy. The trainer reads
every sample once an epoch, in another order each time, so no policy can have more than fits (C/N).
Leaves out the first epochs, in which a cache fills.

LOCKSTEP_BIN as for the tests of real processes. Prints tables in Markdown.
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve()
sys.path.insert(0, str(HERE.parents[1] / "harness"))
from harness import Run, get, scratch_directory  # noqa: E402
from range_server import RangeServer, Throttle  # noqa: E402

SLOWER = 5.5  # 1 - 1/5.5 = 82 %
SIDE = 384    # of an image, pixels
BATCH = 16
CLASSES = ("apple", "pear", "plum")
IN_STEPS = ("data_wait", "copy", "forward", "backward", "communication", "optimizer")
NOTHING_KEPT = {"limit_gb": 1e-9}


def make_images(directory, count):
    """Images of noise, so that each has some 60 kB."""
    for i in range(count):
        label = i % len(CLASSES)
        path = directory / "train" / CLASSES[label] / f"{i:04d}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        noise = bytes((byte >> 2) + 60 * label for byte in os.urandom(3 * SIDE * SIDE))
        path.write_bytes(subprocess.run(["cjpeg", "-quality", "85"], check=True,
                                        stdout=subprocess.PIPE, input=b"P6 %d %d 255\n" %
                                        (SIDE, SIDE) + noise).stdout)
    return sum(path.stat().st_size for path in directory.rglob("*.jpg"))


def read_metrics(text):
    """Seconds by phase, and "steps"."""
    found = {phase: float(value) for phase, value in re.findall(
        r'^lockstep_phase_seconds_total\{[^}]*phase="(\w+)"[^}]*\} (\S+)$', text, re.M)}
    found["steps"] = float(re.search(r"^lockstep_steps_total\{[^}]*\} (\S+)$", text, re.M).group(1))
    return found


class Bench:
    def __init__(self, args, scratch):
        self.args, self.scratch = args, scratch
        self.far = scratch / "far"
        self.bytes = make_images(self.far, args.images)
        self.runs = 0

    def start(self, path, model, epochs, **cache):
        """A run with a cache directory of its own."""
        self.runs += 1
        here = self.scratch / f"run-{self.runs}"
        here.mkdir()
        job = here / "job.yaml"
        job.write_text(json.dumps({
            "model": {"name": model}, "train": {"global_batch": BATCH, "slots": 1, "epochs": epochs},
            "data": {"train": {"path": str(path)}, "cache_dir": str(here / "cache"),
                     "transforms": ["random_resized_crop=32", "flip", "normalize"],
                     "cache": {"chunk_kb": 256, **cache}}}))
        return Run([job, "--workers", 1], here / "run")

    def epochs_of(self, run, server, epochs):
        """The counts of a worker and the server at the end of each epoch but the last, and at the
        last look before the end. `server` is None for local data."""
        run.wait_for(lambda: run.workers() or None, "the worker")
        targets = json.loads(get(f"http://{run.coordinator()['http']}/sd"))
        target = next(t["targets"][0] for t in targets if "local_rank" in t["labels"])
        ends, last, epoch = [], None, 0
        while run.process.poll() is None:
            try:
                text = get(f"http://{target}/metrics").decode()
            except OSError:
                time.sleep(0.01)
                continue
            now = read_metrics(text)
            now["requests"] = len(server.requests) if server else 0
            steps = self.args.images // BATCH
            if now["steps"] >= (epoch + 1) * steps and epoch + 1 < epochs:
                ends.append(now)
                epoch = int(now["steps"] // steps)
            last = now
            time.sleep(0.02)
        if run.wait() != 0:
            sys.exit(run.text()[-3000:])
        return [*ends, last]

    def waits(self, marks):
        """The shares of waiting, by epoch."""
        shares, before = [], {}
        for mark in marks:
            spent = {phase: mark.get(phase, 0) - before.get(phase, 0) for phase in IN_STEPS}
            shares.append(spent["data_wait"] / sum(spent.values()))
            before = mark
        return shares

    def trainer_s(self):
        """Seconds that the trainer computes in an epoch."""
        run = self.start(self.far, "resnet18", 2)
        marks = self.epochs_of(run, None, 2)
        computed = {phase: marks[-1].get(phase, 0) for phase in IN_STEPS if phase != "data_wait"}
        steps = self.args.images // BATCH
        return sum(computed.values()) / marks[-1]["steps"] * steps, self.waits(marks)

    def wait(self):
        epochs = self.args.epochs
        seconds, local = self.trainer_s()
        throttle = Throttle(self.bytes / (SLOWER * seconds))
        print(f"\n{self.args.images} JPEG files, {self.bytes / 1e6:.1f} MB; the trainer computes "
              f"{seconds:.1f} s an epoch; the server sends {throttle.bytes_per_s / 1e3:.0f} kB/s\n")
        print("| where the data are | share of the time waited, by epoch |\n|---|---|")
        self.row("on a local disk", local)
        ways = {"far, nothing kept or fetched ahead": {**NOTHING_KEPT, "memory_mb": 0,
                                                      "requests": 1},
                "far, fetched ahead, nothing kept": {**NOTHING_KEPT, "memory_mb": 2},
                "far, kept (the default)": {}}
        for name, cache in ways.items():
            with RangeServer(self.far, throttle) as server:
                server.write_manifest()
                run = self.start(server.url, "resnet18", epochs, **cache)
                self.row(name, self.waits(self.epochs_of(run, server, epochs)))

    def row(self, name, shares):
        print(f"| {name} | " + ", ".join(f"{100 * share:.1f} %" for share in shares) + " |",
              flush=True)

    def policies(self):
        print("\n| policy | holds 10 % | 20 % | 40 % | 80 % of the samples |\n|---|---|---|---|---|")
        for policy in ("pin", "lru", "fifo"):
            cells = [self.hits(policy, share) for share in (0.1, 0.2, 0.4, 0.8)]
            print(f"| {policy} | " + " | ".join(cells) + " |", flush=True)

    def hits(self, policy, share):
        """The share of an epoch's samples that the cache did not ask the server for."""
        epochs, left_out = 6, 2
        with RangeServer(self.far) as server:
            server.write_manifest()
            run = self.start(server.url, "mlp", epochs, policy=policy, memory_mb=0,
                             limit_gb=share * self.bytes / 1e9)
            marks = self.epochs_of(run, server, epochs)
        rates = []
        for before, after in zip(marks[left_out - 1:], marks[left_out:]):
            samples = (after["steps"] - before["steps"]) * BATCH
            if samples > 0:
                rates.append(1 - (after["requests"] - before["requests"]) / samples)
        return f"{statistics.median(rates):.2f} ({min(rates):.2f} to {max(rates):.2f})"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--images", type=int, default=240, help="a multiple of 16")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--only", default="wait,policies")
    args = parser.parse_args()
    scratch = scratch_directory()
    try:
        bench = Bench(args, scratch)
        for name in args.only.split(","):
            getattr(bench, name)()
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


if __name__ == "__main__":
    main()
