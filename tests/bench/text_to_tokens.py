#!/usr/bin/env python3
"""Text to BPE tokens, on one core: `lockstep data index --tokenizer` beside Hugging Face's
tokenizers and OpenAI's tiktoken, on the same text with the same vocabulary; all must make the same
tokens.

    text_to_tokens.py --lockstep build/release/bin/lockstep [--text FILE] [--megabytes 64] [--vocab 32000]

Python with `pip install tokenizers tiktoken`. The vocabulary is trained on the text. The text is
repeated up to the given size; the default text is this repository's own. Ours includes reading the
text, hashing it, and keeping the tokens on disk; peers get it in memory, by lines, and only hand
back the numbers.
"""
import argparse
import array
import json
import os
import pathlib
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
KINDS = (".cc", ".h", ".md", ".py", ".txt", ".yaml", ".proto")
PATTERN = r"""'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"""


def text_of(args):
    if args.text:
        text = pathlib.Path(args.text).read_text(errors="strict")
    else:
        names = subprocess.run(["git", "-C", ROOT, "ls-files"], capture_output=True, text=True,
                               check=True).stdout.split()
        text = "".join((ROOT / name).read_text(errors="ignore") for name in names
                       if name.endswith(KINDS) and "_samples.h" not in name)
    return text


def trained(text, size):
    from tokenizers import ByteLevelBPETokenizer
    made = ByteLevelBPETokenizer()
    made.train_from_iterator([text], vocab_size=size, show_progress=False)
    return made


def tiktoken_of(whole):
    import tiktoken
    printed = [*range(0x21, 0x7f), *range(0xa1, 0xad), *range(0xae, 0x100)]
    others = [byte for byte in range(256) if byte not in printed]
    byte_of = {chr(byte): byte for byte in printed}
    byte_of.update({chr(256 + i): byte for i, byte in enumerate(others)})
    ranks = {bytes(byte_of[c] for c in token): i for token, i in whole.get_vocab().items()}
    return tiktoken.Encoding("bench", pat_str=PATTERN, mergeable_ranks=ranks, special_tokens={})


def timed(work):
    begin = time.perf_counter()
    result = work()
    return result, time.perf_counter() - begin


def ours(args, path, vocabulary, scratch):
    cache = scratch / "cache"
    subprocess.run([args.lockstep, "data", "index", path, "--format", "text", "--block", "64",
                    "--tokenizer", vocabulary, "--cache-dir", cache], check=True,
                   stdout=subprocess.DEVNULL)
    made, = cache.glob("*.tokens")
    tokens = array.array("H")
    tokens.frombytes(made.read_bytes()[:-72])
    made.unlink()
    return tokens


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--lockstep", default=ROOT / "build/release/bin/lockstep")
    parser.add_argument("--text")
    parser.add_argument("--megabytes", type=int, default=64)
    parser.add_argument("--vocab", type=int, default=32000)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    core = min(os.sched_getaffinity(0))

    once = text_of(args)
    whole = trained(once, args.vocab)
    encoding = tiktoken_of(whole)
    text = once * max(1, args.megabytes * 1_000_000 // len(once.encode()))
    # Cuts where a cut changes no token.
    lines = []
    for line in text.splitlines(keepends=True):
        if lines and (line[0].isspace() or lines[-1][-2:-1].isspace() or len(lines[-1]) < 65_536):
            lines[-1] += line
        else:
            lines.append(line)
    megabytes = len(text.encode()) / 1e6
    os.sched_setaffinity(0, {core})
    with tempfile.TemporaryDirectory() as directory:
        scratch = pathlib.Path(directory)
        (scratch / "text.txt").write_text(text)
        (scratch / "tokenizer.json").write_text(whole.to_str())
        ways = {
            "lockstep": lambda: ours(args, scratch / "text.txt", scratch / "tokenizer.json",
                                     scratch),
            "tokenizers": lambda: [i for line in lines for i in whole.encode(line).ids],
            "tiktoken": lambda: [i for line in lines for i in encoding.encode_ordinary(line)]}
        times = {name: [] for name in ways}
        counts = {}
        for _ in range(args.rounds):
            for name, work in ways.items():
                tokens, seconds = timed(work)
                times[name].append(megabytes / seconds)
                counts[name] = hash(array.array("I", tokens).tobytes()), len(tokens)
    report = {name: {"MB/s": round(sorted(rates)[len(rates) // 2], 2),
                     "lowest": round(min(rates), 2), "highest": round(max(rates), 2),
                     "Mtokens/s": round(sorted(rates)[len(rates) // 2] / megabytes
                                        * counts[name][1] / 1e6, 2)}
              for name, rates in times.items()}
    print(json.dumps({"megabytes": round(megabytes, 1), "vocabulary": args.vocab,
                      "same tokens": counts["lockstep"] == counts["tokenizers"],
                      "same tokens as tiktoken": counts["lockstep"] == counts["tiktoken"],
                      "one core": report}, indent=2))


if __name__ == "__main__":
    main()
