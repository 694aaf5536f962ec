"""Tests and measures Lockstep on the GPU of this machine; run.sh starts it, from a bundle.

It checks what must be right: GoogleTest programs, then tests with real processes. Then it measures
what should be fast, each figure beside PyTorch's, in turn, as medians. It writes each result at
once to OUT/gpu.jsonl, and to the table OUT/gpu.md. The exit status is 1 if something of ours was
wrong or a check was left out, never because something was slow.

    tests/gpu/run.sh [--out DIR] [--minutes N] [--only correct|fast] [--match REGEX] [--device cpu]
    tests/gpu/run.sh --plan [--gpus N]
"""
import argparse
import datetime
import os
import pathlib
import platform
import re
import signal
import subprocess
import sys

import checks
import measures
import plan
from budget import CHECKS_SHARE, Budget
from results import Results
from running import Runner

BUNDLE = pathlib.Path(__file__).resolve().parents[2]
BIN = BUNDLE / "bin"
EXIT_CONFIG = 78  # this machine is not one where it can work
GPUS_TO_TRY = 4  # that a machine without one plays to have


def say(text):
    print(text, flush=True)


def parse():
    parser = argparse.ArgumentParser(prog="tests/gpu/run.sh", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", default="gpu-results", help="directory of the results")
    parser.add_argument("--minutes", type=float, help="end within this time: checks first, then a "
                        "round of each figure, then more rounds")
    parser.add_argument("--only", choices=["correct", "fast"], help="leave the other half out")
    parser.add_argument("--match", default="", help="only checks and figures whose name matches")
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda",
                        help="cpu: tries the suite itself, with small sizes, without a GPU")
    parser.add_argument("--rounds", type=int, default=5, help="of every figure, at most")
    parser.add_argument("--at-once", type=int, help="checks that run side by side")
    parser.add_argument("--plan", action="store_true",
                        help="print the commands, each check and each figure with its prediction")
    parser.add_argument("--gpus", type=int, help="with --plan: of the machine; default: of this")
    args = parser.parse_args()
    if args.gpus is not None and (args.gpus < 1 or not args.plan):
        parser.error("--gpus is 1 or more, and goes with --plan")
    return args


def gpu_lines():
    """nvidia-smi's line for each GPU."""
    return subprocess.run(
        ["nvidia-smi", "--query-gpu=name,memory.total,driver_version", "--format=csv,noheader"],
        check=True, capture_output=True, text=True, timeout=60).stdout.strip().splitlines()


def visible(gpus):
    """The number of these GPUs that this process may use."""
    names = os.environ.get("CUDA_VISIBLE_DEVICES")
    return len(gpus) if names is None else len([name for name in names.split(",") if name])


def gpus_here():
    try:
        return max(1, visible(gpu_lines()))
    except (OSError, subprocess.SubprocessError):
        return 1  # as the smallest machine


def hardware(device):
    """The table's facts about the machine, and the number of its GPUs."""
    about = {"date": datetime.date.today().isoformat(), "machine": platform.machine(),
             "cores": os.cpu_count(), "device": device}
    if device == "cpu":
        return about, GPUS_TO_TRY
    try:
        about["gpu"] = gpu_lines()
    except (OSError, subprocess.SubprocessError) as problem:
        print(f"error: there is no NVIDIA driver here (nvidia-smi: {problem}). On a machine "
              "without a GPU, --device cpu tries the suite itself.", file=sys.stderr)
        sys.exit(EXIT_CONFIG)
    return about, visible(about["gpu"])


def matching(things, pattern):
    return [thing for thing in things if re.search(pattern, thing.name)]


def run(args, out, results, gpus, runner, budget):
    if args.only != "fast":
        say("correctness")
        share = CHECKS_SHARE if args.only is None else 1
        checking = checks.Checking(runner, lambda: budget.left(share), out, args.device, gpus, BIN,
                                   say, results.add_check)
        wanted = checks.gtest_checks(BIN, out) + checks.unittest_checks()
        checking.run(matching(wanted, args.match),
                     args.at_once or checks.default_at_once(args.device, gpus))
    if args.only != "correct":
        say("speed")
        measuring = measures.Measuring(runner, budget, BIN, out, args.device, say,
                                       results.add_answer, gpus)
        measuring.run(matching(measures.workloads(args.device, gpus), args.match), args.rounds)


def main():
    args = parse()
    if args.plan:
        wanted = checks.gtest_checks(BIN, pathlib.Path(args.out), checks.PROGRAMS)
        wanted += checks.unittest_checks()
        print("\n".join(plan.lines(wanted, args.gpus or gpus_here())))
        return 0
    budget = Budget(args.minutes)
    out = pathlib.Path(args.out).resolve()
    out.mkdir(parents=True, exist_ok=True)
    about, gpus = hardware(args.device)
    results = Results(out, about)
    runner = Runner()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: runner.stop())
    try:
        run(args, out, results, gpus, runner, budget)
        results.end("complete")
    except Runner.Stopped:
        results.end("stopped by a signal")
    say(results.table())
    say(f"written: {out / 'gpu.md'}, {out / 'gpu.jsonl'}")
    if not results.is_right():
        say("something is wrong, or was left out: see the rows that are not ok")
    return 0 if results.is_right() and results.state == "complete" else 1


if __name__ == "__main__":
    sys.exit(main())
