#!/usr/bin/env python3
"""The cost of opening a long run: time, memory and bytes read, by number of steps.

    tests/bench/long_run.py --bin build/release/bin --maker build/release/tests/test_long_run \\
        [--steps 100000,2500000,10000000] [--rounds 3] [--keep DIR] [--version-6]

test_long_run writes a run directory as a run of so many steps leaves it when its coordinator dies
(tests/support/long_run.h). Each round measures on a fresh copy of journal and history. Everything
stays on loopback.
"""
import argparse
import json
import os
import pathlib
import resource
import shutil
import signal
import sqlite3
import statistics
import subprocess
import tempfile
import time


def make(options, directory, steps):
    directory.mkdir(parents=True, mode=0o700)
    environment = dict(os.environ, LOCKSTEP_LONG_RUN=str(directory),
                       LOCKSTEP_LONG_RUN_STEPS=str(steps))
    if options.version_6:
        environment["LOCKSTEP_LONG_RUN_VERSION_6"] = "1"
    subprocess.run([options.maker, "--gtest_filter=LongRun.BeginsFromSummariesAsFromAllItsSteps"],
                   env=environment, check=True, stdout=subprocess.DEVNULL)
    (directory / "token").write_text("0" * 64)
    (directory / "token").chmod(0o600)


def usage_of(pid):
    """CPU seconds, VmHWM in MB and MB read, of a living process."""
    stat = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    ticks = int(stat[11]) + int(stat[12])
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    peak = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))
    read = int(pathlib.Path(f"/proc/{pid}/io").read_text().split()[1])
    return {"cpu_s": ticks / os.sysconf("SC_CLK_TCK"), "peak_mb": peak / 1024,
            "read_mb": read / 2**20}


def start(options, directory, words):
    """Starts a coordinator and waits until it serves."""
    (directory / "coordinator.json").unlink(missing_ok=True)
    begin = time.monotonic()
    process = subprocess.Popen([f"{options.bin}/lockstep-coordinator", "--run-dir", directory,
                                *words], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        while not (directory / "coordinator.json").exists():
            if process.poll() is not None:
                raise SystemExit(f"the coordinator ended: {process.stderr.read().decode()}")
            time.sleep(0.005)
        return {"wall_s": time.monotonic() - begin, **usage_of(process.pid)}
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()


def command(options, words):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begin = time.monotonic()
    done = subprocess.run([f"{options.bin}/lockstep", *map(str, words)], check=False,
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0:
        print(f"# {words}: {done.returncode} {done.stderr.decode().strip()[:300]}")
    return {"wall_s": time.monotonic() - begin,
            "cpu_s": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime}


def last_term(directory):
    database = sqlite3.connect(directory / "journal.db")
    try:
        return str(database.execute("SELECT max(term) FROM terms").fetchone()[0])
    finally:
        database.close()


def measure(options, directory):
    kept = directory.parent / "kept"
    shutil.rmtree(kept, ignore_errors=True)
    kept.mkdir()
    for name in ("journal.db", "history.jsonl"):
        shutil.copy(directory / name, kept)

    def restore():
        shutil.rmtree(directory / "terms", ignore_errors=True)
        for path in directory.glob("journal*"):
            path.unlink()
        (directory / "summary.json").unlink(missing_ok=True)
        for name in ("journal.db", "history.jsonl"):
            shutil.copy(kept / name, directory)

    done = {}
    for _ in range(options.rounds):
        for name, words in (("take-over", ["--take-over"]), ("resume", ["--resume"]),
                            ("take-over by another machine",
                             ["--take-over", "--after", last_term(kept), "--seat", "other"])):
            restore()
            done.setdefault(name, []).append(start(options, directory, words))
        restore()
        for name, words in (("status", ["status", directory]), ("report", ["report", directory]),
                            ("top", ["top", directory, "--once"]),
                            ("export tensorboard", ["export", "tensorboard", directory]),
                            ("audit", ["audit", directory])):
            if name not in options.skip.split(","):
                done.setdefault(name, []).append(command(options, words))
    shutil.rmtree(kept)
    events = sum(path.stat().st_size for path in directory.glob("tensorboard/*"))
    figures = {name: {key: round(statistics.median(round_[key] for round_ in rounds), 3)
                      for key in rounds[0]} for name, rounds in done.items()}
    return {**figures, "tensorboard_bytes": events,
            "journal_bytes": (directory / "journal.db").stat().st_size,
            "history_bytes": (directory / "history.jsonl").stat().st_size}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", required=True)
    parser.add_argument("--maker", required=True)
    parser.add_argument("--steps", default="100000,2500000,10000000")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--keep", help="a directory in which runs of these lengths stay")
    parser.add_argument("--version-6", action="store_true",
                        help="journals as an older Lockstep wrote them")
    parser.add_argument("--skip", default="", help="measurements to leave out, with commas")
    options = parser.parse_args()
    for steps in map(int, options.steps.split(",")):
        with tempfile.TemporaryDirectory(prefix="lockstep-long-") as temporary:
            parent = pathlib.Path(options.keep or temporary)
            directory = parent / str(steps) / "run"
            if not directory.exists():
                make(options, directory, steps)
            print(json.dumps({"steps": steps, **measure(options, directory)}), flush=True)


if __name__ == "__main__":
    main()
