"""Tests and measures Lockstep on the GPU of this machine; run.sh starts it, from a bundle.

First what must be right: the GoogleTest programs against the CPU, and real processes (the same
weights for any number of workers on one GPU, after a kill and after a resume). Then, only if all of
that holds, what should be fast: every measurement beside PyTorch's, in turn, as medians. Writes
OUT/gpu.json and OUT/gpu.md; the exit status is 1 where something was wrong, never where it was slow.

    tests/gpu/run.sh [--out DIR] [--only correct|fast] [--device cpu] [--rounds N]
"""
import argparse
import datetime
import json
import os
import pathlib
import platform
import subprocess
import sys
import time

import measures

BUNDLE = pathlib.Path(__file__).resolve().parents[2]
BIN = BUNDLE / "bin"
EXIT_CONFIG = 78  # this machine is not one where it can work


def say(text):
    print(text, flush=True)


def parse():
    parser = argparse.ArgumentParser(prog="tests/gpu/run.sh", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", default="gpu-results", help="directory of the results")
    parser.add_argument("--only", choices=["correct", "fast"], help="leave the other half out")
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda",
                        help="cpu: tries the suite itself, with small sizes, without a GPU")
    parser.add_argument("--rounds", type=int, default=5, help="of every measurement")
    return parser.parse_args()


def hardware(device):
    about = {"date": datetime.date.today().isoformat(), "machine": platform.machine(),
             "cores": os.cpu_count(), "device": device}
    if device == "cuda":
        query = "name,memory.total,driver_version"
        try:
            about["gpu"] = subprocess.run(
                ["nvidia-smi", f"--query-gpu={query}", "--format=csv,noheader"], check=True,
                capture_output=True, text=True).stdout.strip().splitlines()
        except (OSError, subprocess.CalledProcessError) as problem:
            print(f"error: there is no NVIDIA driver here (nvidia-smi: {problem}). On a machine "
                  "without a GPU, --device cpu tries the suite itself.", file=sys.stderr)
            sys.exit(EXIT_CONFIG)
    return about


def run_check(name, command, log, environment=None):
    """One line for people, everything for the log; a check that was skipped did not pass."""
    begin = time.monotonic()
    with open(log, "wb") as f:
        code = subprocess.run(command, stdout=f, stderr=subprocess.STDOUT, cwd=BUNDLE / "tests/gpu",
                              env={**os.environ, **(environment or {})}).returncode
    text = log.read_text(errors="replace")
    skipped = text.count("[  SKIPPED ] ") // 2  # told once as it happens, and once at the end
    result = {"name": name, "ok": code == 0, "skipped": skipped,
              "seconds": round(time.monotonic() - begin, 1)}
    verdict = f"FAILED, exit {code}: {log}" if code else f"ok, {skipped} skipped" if skipped else "ok"
    say(f"  {name:32} {verdict}  ({result['seconds']} s)")
    return result


def correctness(args, out):
    say("correctness")
    results = []
    environment = {"LOCKSTEP_BIN": str(BIN), "LOCKSTEP_SUITE_DEVICE": args.device,
                   "PYTHONPATH": str(BUNDLE / "tests/harness")}
    if args.device == "cuda":
        for program in sorted(BIN.glob("test_gpu*")):
            results.append(run_check(program.name, [program], out / f"{program.name}.log"))
    results.append(run_check("real processes", [sys.executable, "-m", "unittest", "-v", "processes"],
                             out / "processes.log", environment))
    return results


def table(about, checks, figures):
    lines = ["# Lockstep on a GPU", "", *(f"- {key}: {value}" for key, value in about.items()), ""]
    if checks:
        lines += ["| check | result | s |", "|---|---|---|"]
        lines += [f"| {c['name']} | {'ok' if c['ok'] else 'FAILED'}"
                  f"{', %d skipped' % c['skipped'] if c['skipped'] else ''} | {c['seconds']} |"
                  for c in checks]
        lines.append("")
    if figures:
        lines += ["| what | unit | ours | range | peer | its median | range | ratio |",
                  "|---|---|---|---|---|---|---|---|"]
        lines += [measures.row(figure) for figure in figures]
    return "\n".join(lines) + "\n"


def main():
    args = parse()
    out = pathlib.Path(args.out).resolve()
    out.mkdir(parents=True, exist_ok=True)
    about = hardware(args.device)
    checks, figures = [], []
    if args.only != "fast":
        checks = correctness(args, out)
    is_right = all(check["ok"] for check in checks)
    if args.only != "correct" and is_right:
        figures = measures.measure_all(BIN, out, args.device, args.rounds, say)
    (out / "gpu.json").write_text(
        json.dumps({**about, "checks": checks, "figures": figures}, indent=1) + "\n")
    (out / "gpu.md").write_text(table(about, checks, figures))
    say(table(about, checks, figures))
    say(f"written: {out / 'gpu.json'}, {out / 'gpu.md'}")
    if not is_right:
        say("something is wrong; speed was not measured" if args.only != "correct" else
            "something is wrong")
    return 0 if is_right else 1


if __name__ == "__main__":
    sys.exit(main())
