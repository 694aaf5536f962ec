#!/usr/bin/env python3
"""Tokens/s of `lockstep generate` beside transformers' generate: the same weights, the same prompt,
one thread each, both keep keys and values, always the likeliest token.

    generate.py --bin build/release/bin [--layers 6 --heads 6 --width 384 --block 256 --vocab 50257]
                [--tokens 200] [--rounds 3]

Run it by a Python that has torch 2.11.0 and transformers 5.24.0. A run of one step makes the
weights, and `lockstep export model` the directory that both sides load. Rounds take turns, and each
side's best counts. Ends with 1 if the tokens differ.
"""
import argparse
import pathlib
import random
import re
import struct
import subprocess
import sys
import tempfile
import time

import torch
from transformers import GPT2LMHeadModel

PROMPT = [5, 17, 3, 99, 42, 7, 64, 11]


def exported(args, scratch):
    chosen = random.Random(1)
    tokens = [chosen.randrange(args.vocab) for _ in range(40 * args.block)]
    (scratch / "tokens.bin").write_bytes(struct.pack(f"<{len(tokens)}H", *tokens))
    (scratch / "job.yaml").write_text(f"""
job: bench
model: {{name: gpt2, n_layer: {args.layers}, n_head: {args.heads}, n_embd: {args.width},
         block: {args.block}, vocab: {args.vocab}}}
data: {{train: {{path: {scratch}/tokens.bin}}}}
train: {{global_batch: 1, slots: 1, max_steps: 1}}
""")
    for words in (["run", scratch / "job.yaml", "--workers", 1, "--run-dir", scratch / "run"],
                  ["export", "model", scratch / "run", scratch / "out"]):
        subprocess.run([args.bin / "lockstep", *map(str, words)], check=True, capture_output=True)
    return scratch / "out"


def ours(args, directory):
    done = subprocess.run(
        [args.bin / "lockstep", "generate", directory, "--prompt", " ".join(map(str, PROMPT)),
         "--temperature", "0", "--threads", "1", "--tokens", str(args.tokens), "--speed"],
        check=True, capture_output=True, text=True)
    return ([int(word) for word in done.stdout.split()],
            float(re.search(r"([\d.]+) tokens/s", done.stderr)[1]))


def theirs(args, net):
    prompt = torch.tensor([PROMPT])
    with torch.inference_mode():
        begun = time.perf_counter()
        out = net.generate(prompt, attention_mask=torch.ones_like(prompt), do_sample=False,
                           max_new_tokens=args.tokens, min_new_tokens=args.tokens,
                           use_cache=True, pad_token_id=0)
        seconds = time.perf_counter() - begun
    return out[0].tolist(), args.tokens / seconds


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    for name, value in (("layers", 6), ("heads", 6), ("width", 384), ("block", 256),
                        ("vocab", 50257), ("tokens", 200), ("rounds", 3)):
        parser.add_argument(f"--{name}", type=int, default=value)
    args = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as scratch:
        directory = exported(args, pathlib.Path(scratch))
        net = GPT2LMHeadModel.from_pretrained(directory).eval()
        best = {"lockstep": 0.0, "transformers": 0.0}
        for _ in range(args.rounds):
            tokens, speed = ours(args, directory)
            best["lockstep"] = max(best["lockstep"], speed)
            wanted, speed = theirs(args, net)
            best["transformers"] = max(best["transformers"], speed)
    for side, speed in best.items():
        print(f"{side:14} {speed:8.1f} tokens/s")
    same = tokens == wanted
    print("tokens are equal" if same else f"tokens differ:\n{tokens}\n{wanted}")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
