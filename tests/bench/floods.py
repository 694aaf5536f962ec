#!/usr/bin/env python3
"""The cost of a flood of connections that prove nothing, for the run's own commands and workers.

    floods.py [--commands 5] [--pourers 3]

silent: connections that say nothing. tls: half TLS handshakes, to a run with comm.tls. Each pourer is
a process with the flood of floods_test.py. Prints connections a second, the time of `lockstep scale`
without and with the flood (median, least and most), and the time from kill -9 of a worker until
another has its place. The pourers share the machine with the run, so the rate is what is left of
both.
"""
import argparse
import contextlib
import json
import multiprocessing
import os
import pathlib
import resource
import signal
import statistics
import sys
import time

HERE = pathlib.Path(__file__).resolve()
sys.path[:0] = [str(HERE.parents[1] / "harness"), str(HERE.parents[1] / "multiproc")]
from floods_test import Flood, client_hello  # noqa: E402
from harness import Run, lockstep, scratch_directory, slow_slots, synthetic_dataset  # noqa: E402

CROWD = 400


def pour(address, word, full, over, rates):
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, 4 * CROWD), most))
    flood = Flood(address, word, CROWD, threads=1)
    full.wait()
    before, begin = flood.opened, time.monotonic()
    over.wait()
    rates.put((flood.opened - before) / (time.monotonic() - begin))
    flood.end()


class Pourers:
    """The flood of several processes: one alone cannot load a machine fully."""

    def __init__(self, address, word, count):
        self.full, self.over = multiprocessing.Barrier(count + 1), multiprocessing.Event()
        self.rates = multiprocessing.SimpleQueue()
        self.processes = [multiprocessing.Process(
            target=pour, args=(address, word, self.full, self.over, self.rates))
            for _ in range(count)]
        for process in self.processes:
            process.start()
        self.full.wait(60)

    def end(self):
        """The connections/s of all pourers."""
        self.over.set()
        rate = sum(self.rates.get() for _ in self.processes)
        for process in self.processes:
            process.join()
        return rate


def commands(run, count):
    """The seconds of each command."""
    took = []
    for number in range(count):
        begin = time.monotonic()
        done = lockstep("scale", run.run_dir, 2 + number % 2, timeout=60)
        took.append(time.monotonic() - begin)
        if done.returncode != 0:
            raise SystemExit(done.stderr)
    return took


def place_taken_s(run):
    victim, begin = run.worker(0), time.monotonic()
    os.kill(victim, signal.SIGKILL)
    run.wait_for(lambda: victim not in run.workers() and len(run.workers()) >= 2, "another came")
    return time.monotonic() - begin


def spread(took):
    return {"median": round(statistics.median(took), 3), "least": round(min(took), 3),
            "most": round(max(took), 3)}


def measure(scratch, name, word, comm, options):
    job = scratch / f"{name}.yaml"
    data = str(scratch / "data")
    job.write_text(json.dumps({
        "job": name, "model": {"name": "mlp"}, "comm": comm,
        "data": {"train": {"path": data}, "eval": {"path": data}},
        "train": {"global_batch": 64, "slots": 4, "max_steps": 1_000_000},
        "cluster": {"max_crashes": 1000, "rebalance": False}}))
    run = Run([job, "--workers", 2], scratch / name, {**os.environ, **slow_slots(20)})
    run.wait_for_step(50)
    host, port = run.coordinator()["control"].rsplit(":", 1)
    quiet = commands(run, options.commands)
    pourers = Pourers((host, int(port)), word, options.pourers)
    flooded = commands(run, options.commands)
    back_s = place_taken_s(run)
    rate = pourers.end()
    lockstep("stop", run.run_dir, timeout=60)
    return {"flood": name, "connections_per_s": round(rate), "scale_s": spread(quiet),
            "scale_flooded_s": spread(flooded), "place_taken_s": round(back_s, 2),
            "exit_code": run.wait()}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--commands", type=int, default=5)
    parser.add_argument("--pourers", type=int, default=3)
    options = parser.parse_args()
    with contextlib.ExitStack() as stack:
        scratch = scratch_directory(stack.callback)
        synthetic_dataset(scratch / "data", train=3000)
        certificates = scratch / "certificates"
        made = lockstep("certs", certificates, "--hosts", "127.0.0.1")
        if made.returncode != 0:
            raise SystemExit(made.stderr)
        results = [measure(scratch, "silent", b"", {}, options),
                   measure(scratch, "tls", client_hello(), {"tls": str(certificates)}, options)]
    print(json.dumps({"load": os.getloadavg()[0], "floods": results}, indent=2))


if __name__ == "__main__":
    main()
