#!/usr/bin/env python3
"""Runs the tests that take hours, for which no change waits.

    tests/run.sh --night [TIER...] [--minutes N]

A tier is a list of pieces. A call plays pieces for at most N (60) minutes a tier; the next call
goes on where it stopped, until all are played. A new commit begins with the first piece again.
build/night/TIER.md is the report, build/night/TIER.d has the output of each piece. The exit code is
0 if no played piece failed.

    chaos      two small seeds of faults, 12 against real runs, 8 against training loops in Python
    reference  large models, and more worlds of small ones, against eager PyTorch
    alone      the tests that measure: doctor and speed, one at a time
    fuzz       60 s of new inputs for each parser
    tsan       all unit tests with threads under ThreadSanitizer
    sim        1,000,000 simulated histories, from the commit's hash on
    faults     the whole fault suite (faults.sh)
    long       what a run of 10 million steps costs whoever opens it

It builds the programs first, so that the pieces test this tree.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import shlex
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
HISTORIES, HISTORIES_A_PIECE = 1_000_000, 10_000


def ctest(preset, name):
    return (f"ctest --test-dir build/{preset} -R '^{name}$' -j {os.cpu_count()} --no-tests=error "
            "--output-on-failure")


def output(*words):
    return subprocess.run(words, cwd=ROOT, check=True, capture_output=True, text=True).stdout


def chaos_pieces():
    return {"chaos_test": ctest("release", "multiproc.chaos_test"),
            **{f"seed-{i}": f"tests/chaos.sh --seeds 1 --first {i}" for i in range(1, 13)},
            **{f"python-{i}": f"tests/chaos.sh --python --model all --workers 3 --faults 12 --seeds 1 "
                              f"--first {i}" for i in range(1, 7)},
            **{f"everyday-{i}": f"tests/chaos.sh --python --model everyday --workers 4 --faults 25 "
                                f"--seeds 1 --first {i}" for i in range(1, 3)}}


def reference_pieces():
    names = ("reference_images_test", "reference_large_test", "reference_worlds_test")
    return {name: ctest("release", f"multiproc.{name}") for name in names}


def alone_pieces():
    return {name: ctest("release", f"multiproc.{name}") for name in ("doctor_test", "speed_test")}


def fuzz_pieces():
    """One piece, since all targets together take less than half an hour."""
    return {"all": "LOCKSTEP_FUZZ_SECONDS=60 tests/run.sh --tier fuzz"}


def tsan_pieces():
    programs = (ROOT / "build/tsan/test_folders.txt").read_text().splitlines()
    return {name: ctest("tsan", rf"{name}\.[0-9]")
            for name in sorted(line.split()[0] for line in programs)}


def sim_pieces():
    first = 1_000_000 + int(output("git", "rev-parse", "HEAD")[:6], 16)
    begins = range(first, first + HISTORIES, HISTORIES_A_PIECE)
    return {f"{i}-{i + HISTORIES_A_PIECE - 1}": f"build/release/bin/sim --keep-going --seeds "
                                                f"{i}-{i + HISTORIES_A_PIECE - 1}" for i in begins}


def faults_pieces():
    """One piece for each FAMILY/WHAT."""
    names = output("tests/faults.sh", "--list").splitlines()
    groups = dict.fromkeys("/".join(name.split("/")[:2]) for name in names)
    only = "LOCKSTEP_FAULTS_NIGHT=1 tests/faults.sh --only "
    return {group.replace("/", "-"): only + shlex.quote(group + "/*") for group in groups}


def long_pieces():
    return {"10-million-steps": "tests/bench/long_run.py --bin build/release/bin --maker "
                                "build/release/tests/test_long_run --steps 10000000 --rounds 1"}


# Tier: (its pieces, how many at a time, preset, targets)
TIERS = {"chaos": (chaos_pieces, 1, "release", "all"),
         "reference": (reference_pieces, 1, "release", "all"),
         "alone": (alone_pieces, 1, "release", "all"),
         "fuzz": (fuzz_pieces, 1, "asan-ubsan", "fuzz_targets"),
         "tsan": (tsan_pieces, 1, "tsan", "test_programs"),
         "sim": (sim_pieces, os.cpu_count(), "release", "sim"),
         "faults": (faults_pieces, 1, "release", "all"),
         "long": (long_pieces, 1, "release", "all")}


class Night:
    """One tier: its played pieces, their commit, and its report."""

    def __init__(self, name, pieces, commit, directory):
        self.name, self.pieces, self.commit = name, pieces, commit
        self.state = directory / f"{name}.json"
        self.report = directory / f"{name}.md"
        self.logs = directory / f"{name}.d"
        self.logs.mkdir(parents=True, exist_ok=True)
        self.played = self._read()

    def _read(self):
        """{piece: [passed, seconds]}, of this commit."""
        try:
            kept = json.loads(self.state.read_text())
        except (OSError, ValueError):
            return {}
        return kept["played"] if kept["commit"] == self.commit else {}

    def left(self):
        return [piece for piece in self.pieces if piece not in self.played]

    def failed(self):
        return [piece for piece, (passed, _) in self.played.items() if not passed]

    def note(self, piece, passed, seconds):
        """Writes the state after each piece, so that a stop loses none."""
        self.played[piece] = [passed, round(seconds, 1)]
        new = self.state.with_suffix(".new")
        new.write_text(json.dumps({"commit": self.commit, "played": self.played}))
        new.replace(self.state)
        self.write_report()

    def write_report(self):
        count, failed = len(self.played), self.failed()
        whole = "whole" if not self.left() else f"goes on: tests/run.sh --night {self.name}"
        rows = [f"| {piece} | {'passed' if passed else '**failed**'} | {seconds} |"
                for piece, (passed, seconds) in self.played.items()]
        self.report.write_text("\n".join([
            f"# Night tier {self.name}, commit {self.commit[:12]}", "",
            f"{count} of {len(self.pieces)} pieces, {count - len(failed)} passed, {len(failed)} failed, "
            f"{sum(seconds for _, seconds in self.played.values()):.0f} s; {whole}.", "",
            *[f"- failed: `{self.pieces.get(piece, piece)}`, log {self.name}.d/{piece}.log"
              for piece in failed], "" if failed else "",
            "| piece | result | s |", "|---|---|---|", *rows, ""]))

    def play(self, piece):
        begin = time.monotonic()
        with open(self.logs / f"{piece}.log", "w") as log:
            ended = subprocess.run(["bash", "-c", self.pieces[piece]], cwd=ROOT, stdout=log,
                                   stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
        return ended.returncode == 0, time.monotonic() - begin

    def go_on(self, seconds, at_a_time, say=print):
        """Begins no piece after so many seconds."""
        until = time.monotonic() + seconds
        waiting = iter(self.left())
        with concurrent.futures.ThreadPoolExecutor(at_a_time) as pool:
            running = {}
            while True:
                while len(running) < at_a_time and time.monotonic() < until:
                    piece = next(waiting, None)
                    if piece is None:
                        break
                    running[pool.submit(self.play, piece)] = piece
                if not running:
                    break
                done, _ = concurrent.futures.wait(running, return_when="FIRST_COMPLETED")
                for one in done:
                    piece = running.pop(one)
                    passed, took = one.result()
                    self.note(piece, passed, took)
                    say(f"  {'passed' if passed else 'FAILED'} {self.name} {piece}  {took:.0f} s")
        self.write_report()


def build(preset, target):
    """Prints nothing unless the build fails."""
    for words in (["cmake", "--preset", preset],
                  ["cmake", "--build", f"build/{preset}", "-j", str(os.cpu_count()),
                   "--target", target]):
        done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit(f"night: {shlex.join(words)} failed:\n"
                             + (done.stdout + done.stderr)[-3000:])


def commit():
    """HEAD, with a mark if the tree differs from it: then the results belong to no commit."""
    changes = output("git", "status", "--porcelain", "--untracked-files=no")
    return output("git", "rev-parse", "HEAD").strip() + ("-with-changes" if changes else "")


def main():
    parser = argparse.ArgumentParser(description=__doc__, prog="tests/run.sh --night",
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tiers", nargs="*", metavar="TIER", help=", ".join(TIERS))
    parser.add_argument("--minutes", type=float, default=60, help="the most for each tier (60)")
    arguments = parser.parse_args()
    for name in arguments.tiers:
        if name not in TIERS:
            print(f"night: no tier '{name}'; there are: {', '.join(TIERS)}", file=sys.stderr)
            return 64
    subprocess.run([ROOT / "deploy/install_deps.sh", "--for", "tests"], check=True)
    failed = 0
    for name in arguments.tiers or TIERS:
        pieces_of, at_a_time, preset, target = TIERS[name]
        print(f"== {name}", flush=True)
        build(preset, target)
        tier = Night(name, pieces_of(), commit(), ROOT / "build/night")
        tier.go_on(60 * arguments.minutes, at_a_time, say=lambda text: print(text, flush=True))
        print("  " + tier.report.read_text().splitlines()[2], flush=True)
        failed += len(tier.failed())
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
