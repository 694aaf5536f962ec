#!/usr/bin/env python3
"""The cost of padding: an epoch over the same documents, padded, by length, and packed.

    documents.py --lockstep build/release/bin/lockstep [--documents 500] [--rounds 3]

Documents of log-normal lengths (median 90 tokens), a small gpt2, one worker of one thread. Prints
predictions that count per second, from samples/s of summary.json: the median and the range of the
rounds, taken in turns. The next column is the share of padding before a batch is cut to its
longest.
"""
import argparse
import json
import pathlib
import random
import statistics
import struct
import subprocess
import sys
import tempfile

BLOCK, VOCAB, END = 512, 256, 255
DEADLINE_S = 900
WAYS = {"padded": {"documents": "pad"},
        "padded, by length": {"documents": "pad", "shuffle": "length", "block_samples": 64},
        "packed": {"documents": "pack"}}
BATCH = {"padded": 32, "padded, by length": 32, "packed": 8}  # about as many predictions


def write_documents(path, count):
    chance = random.Random(1)
    tokens = []
    for _ in range(count):
        token = chance.randrange(END)
        for _ in range(min(8 * BLOCK, max(2, int(chance.lognormvariate(4.5, 1))))):
            tokens.append(token)
            token = (5 * token + 1 + chance.randrange(3)) % END
        tokens.append(END)
    path.write_bytes(struct.pack(f"<{len(tokens)}H", *tokens))


def run(words):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True,
                          timeout=DEADLINE_S)
    if done.returncode != 0:
        sys.exit(f"{words} ended with {done.returncode}:\n{done.stdout[-1000:]}{done.stderr[-2000:]}")
    return done.stdout


def inspected(args, data, way):
    found = json.loads(run([args.lockstep, "data", "inspect", data, "--json", "--block", BLOCK,
                            "--document-end", END, "--documents", WAYS[way]["documents"]]))
    split = found["splits"][0]
    return {"samples": split["samples"], "predictions": split["documents"]["predictions"]}


def epoch(args, scratch, data, way, samples):
    job = {"job": "documents", "cluster": {"device": "cpu"}, "checkpoint": {"every_steps": 0},
           "model": {"name": "gpt2", "n_layer": 4, "n_head": 4, "n_embd": 128, "block": BLOCK,
                     "vocab": VOCAB},
           "data": {"train": {"path": str(data)}, "document_end": str(END), **WAYS[way]},
           "train": {"global_batch": BATCH[way], "slots": 1, "epochs": 1},
           "optimizer": {"name": "adamw", "lr": 0.001}}
    with tempfile.TemporaryDirectory(dir=scratch) as name:
        path = pathlib.Path(name) / "job.yaml"
        path.write_text(json.dumps(job))
        run([args.lockstep, "run", path, "--workers", 1, "--run-dir", path.with_name("run")])
        summary = json.loads(path.with_name("run").joinpath("summary.json").read_text())
    return samples / summary["samples_per_second"]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lockstep", required=True)
    parser.add_argument("--documents", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        data = pathlib.Path(name) / "documents"
        data.mkdir()
        write_documents(data / "train.bin", args.documents)
        facts = {way: inspected(args, data, way) for way in WAYS}
        rates = {way: [] for way in WAYS}
        for number in range(args.rounds):
            for way in WAYS:
                print(f"round {number + 1} of {args.rounds}: {way:20}", end="\r", file=sys.stderr)
                seconds = epoch(args, name, data, way, facts[way]["samples"])
                rates[way].append(facts[way]["predictions"] / seconds)
    print("| | predictions a second | ratio | padding of whole sequences |\n|---|---|---|---|")
    slowest = statistics.median(rates["padded"])
    for way, values in rates.items():
        median = statistics.median(values)
        padding = 1 - facts[way]["predictions"] / (facts[way]["samples"] * BLOCK)
        print(f"| {way} | {median:,.0f} ({min(values):,.0f} to {max(values):,.0f}) "
              f"| {median / slowest:.2f} | {100 * padding:.2f} % |")


if __name__ == "__main__":
    main()
