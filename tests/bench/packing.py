#!/usr/bin/env python3
"""Packing documents into sequences of one length: the share of padding and the processor time of
data.documents: pack beside others, on the same seeded lengths.

    packing.py [--bench build/release/bin/bench_packing] [--peers PYTHON] [--pieces 100000 1000000]

Checks ours here: every piece once, no pack too full. `reference` is best-fit decreasing as it is
written down, with a sorted list of the rooms that are left; ours must need as many packs. `in
order` is next-fit as the documents come, without sorting, as a loader packs on the fly. `trl bfd`
is Hugging Face's pack_dataset(strategy="bfd"), by batches of 1,000 as it does by default, and of
all pieces at once, if PYTHON's environment has it (`pip install trl`); it moves the tokens, too.

If a stream of documents, one after another, is cut, there is no padding, but a figure tells how
many documents are torn that would have fitted. Documents longer than a sequence are cut into such
first, for all alike.
"""
import argparse
import bisect
import json
import pathlib
import random
import subprocess
import sys
import tempfile
import time
from array import array

ROOT = pathlib.Path(__file__).resolve().parents[2]
PEER = """
import array, json, sys, time
path, room = sys.argv[1], int(sys.argv[2])
lengths = array.array("I"); lengths.frombytes(open(path, "rb").read())
import pyarrow, datasets, numpy
from trl.data_utils import pack_dataset
datasets.disable_progress_bars()
ends = numpy.cumsum(numpy.concatenate([[0], numpy.array(lengths)])).astype("int32")
ids = pyarrow.ListArray.from_arrays(ends, pyarrow.array(numpy.zeros(ends[-1], "uint16")))
data = datasets.Dataset(pyarrow.table({"input_ids": ids}))
begin = time.process_time()
packed = pack_dataset(data, seq_length=room, strategy="bfd", map_kwargs={"batch_size": int(sys.argv[3])})
seconds = time.process_time() - begin
packs = len(packed)
print(json.dumps([packs, seconds]))
"""


def documents(kind, seed, room):
    """Lengths of documents, without end."""
    draw = random.Random(seed)
    while True:
        if kind == "web":  # log-normal, 400 tokens in the middle
            length = int(draw.lognormvariate(6.0, 1.1))
        elif kind == "uniform":
            length = draw.randint(1, room)
        elif kind == "chat":
            length = int(draw.gammavariate(2.0, 60.0))
        else:  # bimodal: short ones, and some that nearly fill a sequence
            length = int(draw.gauss(60, 20) if draw.random() < 0.7 else draw.gauss(0.8 * room, 80))
        yield max(1, length)


def pieces_of(kind, seed, room, count):
    lengths = array("I")
    torn = at = 0
    for length in documents(kind, seed, room):
        # Counts documents that a cut every `room` tokens of the stream would tear.
        torn += length <= room and at // room != (at + length - 1) // room
        at += length
        while length > 0 and len(lengths) < count:
            lengths.append(min(length, room))
            length -= lengths[-1]
        if len(lengths) == count:
            return lengths, torn


def reference(lengths, room):
    left = []  # sorted; one entry for every pack that is not full
    packs = 0
    for length in sorted(lengths, reverse=True):
        at = bisect.bisect_left(left, length)
        if at == len(left):
            packs += 1
            rest = room - length
        else:
            rest = left.pop(at) - length
        if rest > 0:
            bisect.insort(left, rest)
    return packs


def in_order(lengths, room):
    packs = left = 0
    for length in lengths:
        if length > left:
            packs += 1
            left = room
        left -= length
    return packs


def timed(work, *args):
    begin = time.process_time()
    result = work(*args)
    return result, time.process_time() - begin


def ours(args, path, lengths, room, scratch):
    out = scratch / "packs"
    said = subprocess.run([args.bench, path, str(room), str(args.rounds), out], check=True,
                          capture_output=True, text=True).stdout
    numbers = array("I")
    numbers.frombytes(out.read_bytes())
    packs = numbers[0]
    begins, pieces = numbers[1:packs + 2], numbers[packs + 2:]
    assert sorted(pieces) == list(range(len(lengths))), "every piece once"
    for i in range(packs):
        assert 0 < sum(lengths[p] for p in pieces[begins[i]:begins[i + 1]]) <= room, "a pack too full"
    return packs, float(said)


def trl(args, path, room, batch):
    if args.peers is None:
        return None, "not measured: no --peers"
    try:
        done = subprocess.run([args.peers, "-c", PEER, path, str(room), str(batch)],
                              capture_output=True, text=True, timeout=args.limit_s)
    except subprocess.TimeoutExpired:
        return None, f"more than {args.limit_s} s"
    if done.returncode != 0:
        return None, "not measured: " + done.stderr.strip().split("\n")[-1][:90]
    packs, seconds = json.loads(done.stdout.strip().split("\n")[-1])
    return packs, seconds


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bench", default=ROOT / "build/release/bin/bench_packing")
    parser.add_argument("--peers")
    parser.add_argument("--pieces", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--rooms", type=int, nargs="+", default=[1024, 2048])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--limit_s", type=int, default=120)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    worse = 0
    for count in args.pieces:
        for room in args.rooms:
            for kind in ("web", "uniform", "chat", "bimodal"):
                lengths, torn = pieces_of(kind, args.seed, room, count)
                tokens = sum(lengths)
                with tempfile.TemporaryDirectory() as name:
                    scratch = pathlib.Path(name)
                    path = scratch / "lengths"
                    path.write_bytes(lengths.tobytes())
                    found = {"ours": ours(args, path, lengths, room, scratch),
                             "reference": timed(reference, lengths, room),
                             "in order": timed(in_order, lengths, room),
                             "trl bfd, batches of 1,000": trl(args, path, room, 1000),
                             "trl bfd, all at once": trl(args, path, room, count)}
                worse += found["ours"][0] > found["reference"][0]
                print(f"\n{kind}, {count} pieces into {room}: {tokens} tokens, at least "
                      f"{-(-tokens // room)} packs; cut as a stream {torn} documents are torn that "
                      "fit\n\n| by | packs | padding | processor seconds |\n|---|---|---|---|")
                for by, (packs, seconds) in found.items():
                    if packs is None:
                        print(f"| {by} | {seconds} | | |")
                    else:
                        padding = 100 * (1 - tokens / packs / room)
                        print(f"| {by} | {packs} | {padding:.3f} % | {seconds:.4f} |")
                sys.stdout.flush()
    if worse > 0:
        sys.exit(f"ours needs more packs than the reference in {worse} cases")


if __name__ == "__main__":
    main()
