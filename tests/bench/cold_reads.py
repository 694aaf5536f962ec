#!/usr/bin/env python3
"""Reads of a file that is not in memory, by each reader and by the loader, beside fio and dd on the
same file.

    cold_reads.py --bin build/release/bin [--scratch DIR] [--rounds 5]

The readers read records of 3 KB, 100 KB and 1 MB in permuted order, other places in each round and
the same for all readers, and large pieces in sequence. The loader makes batches of as many records
in the order of an epoch: stored images of such a size (IDX), and PNG images of 3 KB and of 100 KB,
in a tar shard and as files of their own. Nearly all of such a PNG is a chunk that no decoder looks
into.

Before each measurement posix_fadvise puts the files out of the page cache. Turns alternate: all
rows of a round, then the next round, which begins with another row, because the cache of a virtual
machine's host helps the later rows. Prints the medians of the rounds in MB/s with their range, the
processor time a GB, and the ratio to the first row; --json keeps the figures of every round.

fio reads at random places by itself: psync one at a time, and io_uring with 32 in flight, both
through the page cache, and io_uring around it (direct, for records of whole pages). dd reads in
sequence. A program that is not installed is a row `not measured`.
"""
import argparse
import io
import json
import os
import pathlib
import shutil
import statistics
import struct
import subprocess
import sys
import tarfile
import tempfile
import time
import zlib

DEADLINE_S = 600
# Whole records of every size. From 1 GiB on, only some of the content makes the fingerprint.
FILE_BYTES = 15 * 75 << 20
# PNG images: the bytes of one, how many there are, and how many of them are read.
PICTURES = ((3_072, 60_000, 6_000), (102_400, 8_000, 1_500))
# Name, bytes of a record, records, order, height and width of an image of that size.
PATTERNS = (("3 KB records", 3_072, 4_000, "permuted", (48, 64)),
            ("100 KB records", 102_400, 1_500, "permuted", (320, 320)),
            ("1 MB records", 1_048_576, 250, "permuted", (1024, 1024)),
            ("8 MB in sequence", 8_388_608, 48, "sequential", None))
READERS = ("one-by-one", "pread", "page-cache")
# Values of data.reader and data.read_ahead_mb.
LOADERS = (("auto", 0), ("auto", 64), ("mmap", 64), ("pread", 64))
BATCH_BYTES = 4 << 20
BATCH_SAMPLES = 128


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


def loader(programs, directory, reader, mib, record, records, seed, decoded):
    words = [programs / "bench_loader", "cold", "--data", directory, "--records", records,
             "--reader", reader, "--read-ahead-mb", mib, "--seed", seed,
             "--batch", min(BATCH_SAMPLES, BATCH_BYTES // record)]
    if decoded:
        words += ["--threads", os.cpu_count()]
    seen = json.loads(run(words).stdout)
    return seen["bytes"] / seen["wall_s"] / 1e6, seen["cpu_s"] / seen["bytes"] * 1e9


def loader_rows(programs, directory, record, records, decoded=False):
    def of(reader, mib):
        return lambda seed: loader(programs, directory, reader, mib, record, records, seed, decoded)

    return [(f"loader, {reader}" if mib else "loader, nothing read ahead", of(reader, mib))
            for reader, mib in LOADERS]


def rows_of(bench, path, record, records, order):
    """Pairs of a name and a function of the round that measures it; None: cannot be measured."""
    def of_reader(reader):
        return lambda seed: ours(bench, path, reader, record, records, order, seed)

    def of_fio(engine, depth, direct):
        if not shutil.which("fio") or (direct and record % 4_096):
            return None
        return lambda seed: fio(path, engine, depth, direct, record, records, order, seed)

    rows = [(reader, of_reader(reader)) for reader in READERS]
    rows += [("fio psync", of_fio("psync", 1, False)),
             ("fio io_uring, 32 in flight", of_fio("io_uring", 32, False)),
             ("fio io_uring direct, 32 in flight", of_fio("io_uring", 32, True))]
    if order == "sequential":
        rows.append(("dd", lambda seed: dd(path, record, records)))
    return rows


def idx_header(kind, *dimensions):
    return struct.pack(f">{1 + len(dimensions)}I", kind, *dimensions)


def make_images(directory):
    """Writes bytes of which as_images() makes images."""
    directory.mkdir()
    path = directory / "train-images-idx3-ubyte"
    with open(path, "wb") as file:
        file.write(idx_header(0x803, 0, 0, 0))
        for _ in range(FILE_BYTES >> 20):
            file.write(os.urandom(1 << 20))
        file.flush()
        os.fsync(file.fileno())
    return path


def as_images(path, height, width):
    count = FILE_BYTES // (height * width)
    with open(path, "r+b") as file:
        file.write(idx_header(0x803, count, height, width))
        file.flush()
        os.fsync(file.fileno())
    labels = idx_header(0x801, count) + bytes(i % 10 for i in range(count))
    (path.parent / "train-labels-idx1-ubyte").write_bytes(labels)


def png_chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def picture(size):
    """A PNG of 16 x 16 in `size` bytes."""
    grey = b"".join(b"\0" + os.urandom(16) for _ in range(16))
    head = b"\x89PNG\r\n\x1a\n" + png_chunk(b"IHDR", struct.pack(">IIBBBBB", 16, 16, 8, 0, 0, 0, 0))
    tail = png_chunk(b"IDAT", zlib.compress(grey)) + png_chunk(b"IEND", b"")
    return head + png_chunk(b"raNd", os.urandom(size - len(head) - len(tail) - 12)) + tail


def make_shard(directory, size, pictures):
    directory.mkdir()
    path = directory / "train-0.tar"
    with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as shard:
        for i in range(pictures):
            for suffix, data in (("png", picture(size)), ("cls", str(i % 10).encode())):
                entry = tarfile.TarInfo(f"{i:06}.{suffix}")
                entry.size = len(data)
                shard.addfile(entry, io.BytesIO(data))
    with open(path, "rb") as file:
        os.fsync(file.fileno())
    return path


def make_folder(directory, size, pictures):
    for i in range(pictures):
        path = directory / "train" / str(i % 10) / f"{i:06}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(picture(size))
    os.sync()
    return directory


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


def measure(name, rows, rounds):
    seen = {row: [] for row, _ in rows}
    for seed in range(1, rounds + 1):
        first = seed * len(rows) // rounds % len(rows)
        for row, measure_it in rows[first:] + rows[:first]:
            if measure_it is not None:
                seen[row].append(measure_it(seed))
    show(name, rows, seen)
    sys.stdout.flush()
    return seen


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True, type=pathlib.Path,
                        help="with bench_reads and bench_loader")
    parser.add_argument("--scratch", type=pathlib.Path, help="on the disk that is measured")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=pathlib.Path, help="the figures of every round")
    args = parser.parse_args()
    all_seen = {}
    with tempfile.TemporaryDirectory(prefix="lockstep-cold-reads-", dir=args.scratch) as scratch:
        directory = pathlib.Path(scratch)
        os.environ["TMPDIR"] = scratch  # the loader's caches of the data
        images, bench = make_images(directory / "images"), args.bin / "bench_reads"
        for name, record, records, order, size in PATTERNS:
            rows = rows_of(bench, images, record, records, order)
            if size is not None:
                as_images(images, *size)
                rows += loader_rows(args.bin, images.parent, record, records)
            all_seen[name] = measure(name, rows, args.rounds)
        images.unlink()
        for size, pictures, records in PICTURES:
            shard = make_shard(directory / "shard", size, pictures)
            name = f"PNG images of {size // 1024} KB"
            all_seen[name + " in a tar"] = measure(
                name + " in a tar shard",
                rows_of(bench, shard, size, records, "permuted")
                + loader_rows(args.bin, shard.parent, size, records, decoded=True), args.rounds)
            shutil.rmtree(shard.parent)
            folder = make_folder(directory / "folder", size, pictures)
            all_seen[name + " as files"] = measure(
                name + ", files of their own",
                loader_rows(args.bin, folder, size, records, decoded=True), args.rounds)
            shutil.rmtree(folder)
    if args.json:
        args.json.write_text(json.dumps(all_seen, indent=1))


if __name__ == "__main__":
    main()
