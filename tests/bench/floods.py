#!/usr/bin/env python3
"""What a flood of connections that prove nothing costs the run's own people.

    floods.py [--seconds 8] [--commands 5] [--pourers 3]

silent: connections that say nothing. tls: half TLS handshakes, to a run with comm.tls. Each pourer is
a process that opens connections as fast as it can and closes the oldest of 400. Prints connections a
second, the time of `lockstep scale` without and with the flood (median, least and most), and the
time from kill -9 of a worker until another has its place. The pourers share the machine with the
run, so the rate is what is left of both.
"""
import argparse
import contextlib
import json
import multiprocessing
import os
import pathlib
import resource
import signal
import socket
import statistics
import sys
import time

HERE = pathlib.Path(__file__).resolve()
sys.path[:0] = [str(HERE.parents[1] / "harness"), str(HERE.parents[1] / "multiproc")]
from floods_test import client_hello  # noqa: E402
from harness import Run, lockstep, scratch_directory, slow_slots, synthetic_dataset  # noqa: E402

CROWD = 400


def pour(address, word, opened, over):
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, 4 * CROWD), most))
    crowd = []
    while not over.is_set():
        one = socket.socket()
        one.setblocking(False)
        with contextlib.suppress(OSError):
            one.connect(address)
        crowd.append(one)
        if len(crowd) == CROWD:
            oldest = crowd.pop(0)
            with contextlib.suppress(OSError):
                oldest.send(word)
                opened.value += 1
            oldest.close()
    for one in crowd:
        one.close()


class Flood:
    def __init__(self, address, word, pourers):
        self.over = multiprocessing.Event()
        self.counts = [multiprocessing.Value("Q", 0) for _ in range(pourers)]
        self.processes = [multiprocessing.Process(target=pour, args=(address, word, count, self.over))
                          for count in self.counts]
        for process in self.processes:
            process.start()
        while self.opened() < pourers * CROWD:
            time.sleep(0.01)

    def opened(self):
        return sum(count.value for count in self.counts)

    def end(self):
        self.over.set()
        for process in self.processes:
            process.join()


def commands(run, count):
    """Seconds of each."""
    took = []
    for number in range(count):
        begin = time.monotonic()
        done = lockstep("scale", run.run_dir, 2 + number % 2, timeout=60)
        took.append(time.monotonic() - begin)
        if done.returncode != 0:
            raise SystemExit(done.stderr)
    return took


def place_taken_s(run):
    victim, begin = run.workers()[0], time.monotonic()
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
    flood = Flood((host, int(port)), word, options.pourers)
    before, begin = flood.opened(), time.monotonic()
    flooded = commands(run, options.commands)
    back_s = place_taken_s(run)
    time.sleep(max(0, begin + options.seconds - time.monotonic()))
    rate = (flood.opened() - before) / (time.monotonic() - begin)
    flood.end()
    lockstep("stop", run.run_dir, timeout=60)
    return {"flood": name, "connections_per_s": round(rate), "scale_s": spread(quiet),
            "scale_flooded_s": spread(flooded), "place_taken_s": round(back_s, 2),
            "exit_code": run.wait()}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=8)
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
