#!/usr/bin/env python3
"""The cost of TLS and of being scraped, per step: the same job in turns with and without.

    overhead.py tls --lockstep build/release/bin/lockstep [--rounds 5] [--model mlp] [--steps 600]
    overhead.py metrics --lockstep build/release/bin/lockstep ...

tls: two workers on two hosts (network namespaces joined by a bridge; root): in the clear, with
certificates for control alone (comm.trusted_network), with certificates for control and data.
metrics: two workers on this host, without a scraper; with a scrape of each target (coordinator,
agent, workers) every 15 s, as Prometheus does by default; with one every second.

Prints for each the median of samples/s of summary.json, the range, and the ratio to the first.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import threading
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/cluster/world"), str(ROOT / "tests/harness")]

DEADLINE_S = 600


def job_file(args, directory, **comm):
    job = {"job": "overhead", "model": {"name": args.model},
           "data": {"train": {"path": args.data}, "cache_dir": str(directory / "cache")},
           "train": {"global_batch": args.batch, "slots": 2, "max_steps": args.steps, "epochs": 50},
           "optimizer": {"name": "adamw", "lr": 0.001}, "checkpoint": {"every_steps": 0},
           "cluster": {"device": "cpu"}, "comm": comm}
    path = directory / "job.yaml"
    path.write_text(json.dumps(job))
    return path


def samples_per_second(run):
    return json.loads((run / "summary.json").read_text())["samples_per_second"]


def finish(processes):
    for process in processes:
        said, _ = process.communicate(timeout=DEADLINE_S)
        if process.returncode != 0:
            sys.exit(f"{process.args} ended with {process.returncode}:\n{said}")


# ---- TLS ----

def on_two_hosts(args, hosts, **comm):
    with tempfile.TemporaryDirectory() as name:
        directory = pathlib.Path(name)
        job = job_file(args, directory, **comm)
        ranks = []
        for i in range(2):
            env = dict(os.environ, LOCKSTEP_RANK=str(i), LOCKSTEP_WORLD_SIZE="2",
                       LOCKSTEP_LOCAL_RANK="0", LOCKSTEP_LOCAL_WORLD_SIZE="1",
                       LOCKSTEP_LAUNCH_ID=name)
            ranks.append(subprocess.Popen(
                [*hosts.on(i), args.lockstep, "agent", job, "--run-dir", directory / "run"],
                env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT))
        finish(ranks)
        return samples_per_second(directory / "run")


def tls_ways(args, hosts, certificates):
    from hosts import NETWORK

    addresses = ",".join(hosts.address(i) for i in range(2))
    subprocess.run([args.lockstep, "certs", certificates, "--hosts", addresses], check=True,
                   capture_output=True)
    tls = {"network": NETWORK, "tls": str(certificates)}
    return {"in the clear": lambda: on_two_hosts(args, hosts, network=NETWORK),
            "TLS for control": lambda: on_two_hosts(args, hosts, **tls, trusted_network=True),
            "TLS for control and data": lambda: on_two_hosts(args, hosts, **tls)}


# ---- metrics ----

def scrape_all(run, every_s, stop):
    """Scrapes, until `stop`, all targets that the coordinator's /sd knows, as Prometheus would."""
    scraped = 0
    while not stop.wait(every_s):
        try:
            http = json.loads((run / "coordinator.json").read_text())["http"]
            with urllib.request.urlopen(f"http://{http}/sd", timeout=5) as answer:
                targets = [t for group in json.load(answer) for t in group["targets"]]
            for target in targets:
                with urllib.request.urlopen(f"http://{target}/metrics", timeout=5) as answer:
                    answer.read()
                scraped += 1
        except OSError:
            continue  # it has not begun, or is over
    return scraped


def watched(args, every_s):
    with tempfile.TemporaryDirectory() as name:
        directory = pathlib.Path(name)
        stop = threading.Event()
        run = directory / "run"
        scraper = threading.Thread(target=scrape_all, args=(run, every_s, stop))
        if every_s:
            scraper.start()
        finish([subprocess.Popen([args.lockstep, "run", job_file(args, directory), "--workers", "2",
                                  "--run-dir", run], text=True, stdout=subprocess.PIPE,
                                 stderr=subprocess.STDOUT)])
        stop.set()
        if every_s:
            scraper.join()
        return samples_per_second(run)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["tls", "metrics"])
    parser.add_argument("--lockstep", required=True, type=lambda p: pathlib.Path(p).resolve())
    parser.add_argument("--data", default="/usr/share/datasets/fashion-mnist")
    parser.add_argument("--model", default="mlp")
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        hosts = None
        if args.what == "tls":
            from hosts import Hosts

            hosts = Hosts(2)
            ways = tls_ways(args, hosts, pathlib.Path(name) / "tls")
        else:
            ways = {"not scraped": lambda: watched(args, 0),
                    "scraped every 15 s": lambda: watched(args, 15),
                    "scraped every second": lambda: watched(args, 1)}
        try:
            rates = {what: [] for what in ways}
            for turn in range(args.rounds):
                for what, measure in ways.items():
                    rates[what].append(measure())
                print(f"round {turn + 1} of {args.rounds}", file=sys.stderr, flush=True)
        finally:
            if hosts:
                hosts.close()
    first = next(iter(rates.values()))
    for what, values in rates.items():
        ratios = [a / b for a, b in zip(values, first)]
        print(f"{what:26} {statistics.median(values):8.0f} samples/s ({min(values):.0f} to "
              f"{max(values):.0f}), {statistics.median(ratios):.3f} of the first "
              f"({min(ratios):.3f} to {max(ratios):.3f})")


if __name__ == "__main__":
    main()
