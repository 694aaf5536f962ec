#!/usr/bin/env python3
"""Reads of a file that is not in memory, by each reader, beside fio and dd on the same file.

    cold_reads.py --bench build/release/bin/bench_reads [--file PATH] [--mib 1024] [--rounds 5]

Records of 3 KB, 100 KB and 1 MB in permuted order, other places in each round and the same for all
readers, and large pieces in sequence. Before each measurement the file is put out of the page cache
(posix_fadvise). Turns alternate: all rows of a round, then the next round. Printed are the medians of
the rounds in MB/s with their range, the processor time a GB, and the ratio to the first row.

fio reads at random places by itself: psync one at a time, and io_uring with 32 in flight, both through
the page cache, and io_uring around it (direct, for records of whole pages). dd is for the sequence. What
is not installed is a row `not measured`.
"""
import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

DEADLINE_S = 600
PATTERNS = (("3 KB records", 3_072, 4_000, "permuted"),
            ("100 KB records", 102_400, 1_500, "permuted"),
            ("1 MB records", 1_048_576, 250, "permuted"),
            ("8 MB in sequence", 8_388_608, 48, "sequential"))
READERS = ("one-by-one", "pread", "uring", "uring-direct", "mmap")


def run(command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True,
                          timeout=DEADLINE_S)
    if done.returncode != 0:
        sys.exit(f"{command} ended with {done.returncode}:\n{done.stderr[-2000:]}")
    return done


def evict(path):
    with open(path, "rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def ours(bench, path, reader, record, records, order, seed):
    seen = json.loads(run([bench, "--file", path, "--reader", reader, "--record", record,
                           "--records", records, "--order", order, "--seed", seed]).stdout)
    return seen["bytes"] / seen["wall_s"] / 1e6, seen["cpu_s"] / seen["bytes"] * 1e9


def fio(path, engine, depth, direct, record, records, order, seed):
    evict(path)
    seen = json.loads(run(
        ["fio", "--name=cold", f"--filename={path}", "--readonly", f"--ioengine={engine}",
         f"--iodepth={depth}", f"--direct={int(direct)}", f"--bs={record}",
         f"--io_size={record * records}", "--invalidate=1", f"--randseed={seed}",
         "--rw=" + ("randread" if order == "permuted" else "read"),
         "--output-format=json"]).stdout)["jobs"][0]
    read_s = seen["read"]["runtime"] / 1e3
    cpu_s = (seen["usr_cpu"] + seen["sys_cpu"]) / 100 * read_s
    return (seen["read"]["io_bytes"] / read_s / 1e6, cpu_s / seen["read"]["io_bytes"] * 1e9)


def dd(path, record, records):
    evict(path)
    begin = time.monotonic()
    before = os.times()
    run(["dd", f"if={path}", "of=/dev/null", f"bs={record}", f"count={records}"])
    wall, after = time.monotonic() - begin, os.times()
    cpu = (after.children_user + after.children_system
           - before.children_user - before.children_system)
    return record * records / wall / 1e6, cpu / (record * records) * 1e9


def rows_of(bench, path, record, records, order):
    """Name and what measures it, given the round; None: cannot be measured."""
    def of_reader(reader):
        return lambda seed: ours(bench, path, reader, record, records, order, seed)

    def of_fio(engine, depth, direct):
        if not shutil.which("fio") or (direct and record % 4_096):
            return None
        return lambda seed: fio(path, engine, depth, direct, record, records, order, seed)

    rows = [(reader, of_reader(reader)) for reader in READERS
            if reader != "uring-direct" or record >= 256 * 1024]
    rows += [("fio psync", of_fio("psync", 1, False)),
             ("fio io_uring, 32 in flight", of_fio("io_uring", 32, False)),
             ("fio io_uring direct, 32 in flight", of_fio("io_uring", 32, True))]
    if order == "sequential":
        rows.append(("dd", lambda seed: dd(path, record, records)))
    return rows


def make_file(path, mib):
    with open(path, "wb") as file:
        for _ in range(mib):
            file.write(os.urandom(1 << 20))
        file.flush()
        os.fsync(file.fileno())


def show(name, rows, seen):
    print(f"\n| {name} | MB/s, median of {len(seen[rows[0][0]])} (range) | CPU s/GB | ratio |")
    print("|---|---|---|---|")
    first = statistics.median(rate for rate, _ in seen[rows[0][0]])
    for row, measure in rows:
        if measure is None:
            why = "not of whole pages" if shutil.which("fio") else "fio is not installed"
            print(f"| {row} | not measured: {why} | | |")
            continue
        rates = [rate for rate, _ in seen[row]]
        cpu = statistics.median(cpu for _, cpu in seen[row])
        middle = statistics.median(rates)
        print(f"| {row} | {middle:.0f} ({min(rates):.0f}–{max(rates):.0f}) | {cpu:.2f} | "
              f"{middle / first:.1f}x |")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bench", required=True, type=pathlib.Path)
    parser.add_argument("--file", type=pathlib.Path, help="made where it is not there")
    parser.add_argument("--mib", type=int, default=1024)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="lockstep-cold-reads-") as scratch:
        path = args.file or pathlib.Path(scratch) / "file"
        if not path.exists():
            make_file(path, args.mib)
        for name, record, records, order in PATTERNS:
            rows = rows_of(args.bench, path, record, records, order)
            seen = {row: [] for row, _ in rows}
            for seed in range(1, args.rounds + 1):
                for row, measure in rows:
                    if measure is not None:
                        seen[row].append(measure(seed))
            show(name, rows, seen)
            sys.stdout.flush()


if __name__ == "__main__":
    main()
