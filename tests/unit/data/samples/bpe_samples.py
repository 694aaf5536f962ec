"""Writes bpe_samples.h: a small vocabulary that Hugging Face's tokenizers trained, nasty texts, and
the tokens that it makes of them; and the vocabulary's files for the fuzzer (tests/fuzz/corpus/bpe).
OpenAI's tiktoken, given the same vocabulary and GPT-2's pattern, must make the same tokens.

  pip install tokenizers tiktoken && python3 tests/unit/data/samples/bpe_samples.py
"""
import json
import pathlib
import struct
import tempfile

import tiktoken
import tokenizers
from tokenizers import AddedToken, ByteLevelBPETokenizer, Tokenizer

import samples_header

TEXT = """We've said that it's not what they'd do, and I'm sure they'll see: the samples of an epoch
are used once, and once only. Numbers such as 1, 22, 333 and 4,444 stand here; so do Größe, naïve,
Ελληνικά, русский, 日本語 and हिन्दी.   Three blanks,\ttabs\r\nand other line ends.\n\n\nThe end of an
end.
""" * 3

TEXTS = {
    "empty": "",
    "plain": "The samples of an epoch are used once.",
    "contractions": "don't I'LL we've they're I'm he'd 's 't' 're ''ve 'x it's's 'S",
    "leading": "   three before, two after  ",
    "blanks": " \n \n\n  x\t\ty \r\n z \u00a0 \u00a0w\u2003v \u2028u\u3000\u3000t"
              "\u0085\u0085s \u1680 r",
    "all_blank": " \n\t  \u00a0",
    "no_blank": "\u001c\u001d\u200b\u180e\ufeff x\u001f y",
    "letters": "Größe naïve Ελληνικά русский 日本語 हिन्दी العربية עברית ไทย \U00020000\U000323b0ᲊ",
    "scripts": "한국어 ქართული Հայերեն தமிழ் বাংলা አማርኛ བོད་སྐད ᏣᎳᎩ ᠮᠣᠩᠭᠣᠯ ⵜⴰⵎⴰⵣⵉⵖⵜ ǅǈ \U00010330",
    "marks": "e\u0301a\u0308 x\u0300\u0301 \u0300 नि",
    "numbers": "1 22 3a 4½ Ⅷ ٣٤ ¹² 二 〇 \U0001d7d8\U00010d40 1'000,5",
    "signs": "... !?'\" -- (x) [y] {z} <|x|> a_b $9 €7 § ☃ 👩‍👩‍👧 🇩🇪",
    "nulls": "a\u0000b\u0000 \u0000",
    "added": "x<|endoftext|>y <|endoftext|> <|endoftext|><|endoftext|>\n<|endoftext",
    "normalized": "a<sep>b <sep> c<|end<sep>oftext|> two words<sep>",
    "blank_token": "one two  words here two words. two\nwords",
    "long_run": "a" * 900 + " " * 200 + "ab" * 300 + "\n" * 99,
    "edges": "\u007f\u0080\u07ff\u0800\uffff\U00010000\U0010ffff",
}


def trained():
    made = ByteLevelBPETokenizer()
    made.train_from_iterator([TEXT, TEXTS["long_run"]], vocab_size=420, min_frequency=2,
                             show_progress=False)
    return made


def by_tiktoken(pair):
    """Returns another implementation's encoder for the same vocabulary."""
    letters = tokenizers.pre_tokenizers.ByteLevel.alphabet()
    printed = [*range(0x21, 0x7f), *range(0xa1, 0xad), *range(0xae, 0x100)]
    others = [byte for byte in range(256) if byte not in printed]
    byte_of = {chr(byte): byte for byte in printed}
    byte_of.update({chr(256 + i): byte for i, byte in enumerate(others)})
    assert set(byte_of) == set(letters)
    ranks = {bytes(byte_of[c] for c in token): i for token, i in pair.get_vocab().items()}
    made = tiktoken.Encoding(
        "sample", mergeable_ranks=ranks, special_tokens={},
        pat_str=r"""'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+""")
    return made.encode_ordinary


def main():
    pair = trained()
    other = by_tiktoken(pair)
    with tempfile.TemporaryDirectory() as directory:
        pair.save_model(directory)
        files = {name: (pathlib.Path(directory) / name).read_bytes()
                 for name in ("vocab.json", "merges.txt")}
    whole = Tokenizer.from_str(pair.to_str())
    whole.add_special_tokens(["<|endoftext|>"])
    whole.add_tokens([AddedToken("<sep>", normalized=True), AddedToken("two words")])
    described = json.loads(whole.to_str())
    described["post_processor"] = None
    files["tokenizer.json"] = json.dumps(described, ensure_ascii=False).encode()
    # As older versions wrote them.
    described["model"]["merges"] = [" ".join(pair) for pair in described["model"]["merges"]]
    files["old_tokenizer.json"] = json.dumps(described).encode()
    samples = dict(files)
    whole = Tokenizer.from_str(files["tokenizer.json"].decode())
    for name, text in TEXTS.items():
        samples["text " + name] = text.encode()
        assert other(text) == pair.encode(text).ids, name
        for kind, ids in (("whole", whole.encode(text).ids), ("pair", pair.encode(text).ids)):
            samples[f"{kind} {name}"] = struct.pack(f"<{len(ids)}I", *ids)
    samples_header.write(__file__, f"tokenizers {tokenizers.__version__}", "bpe", samples)
    corpus = pathlib.Path(__file__).resolve().parents[3] / "fuzz" / "corpus" / "bpe"
    corpus.mkdir(parents=True, exist_ok=True)
    (corpus / "tokenizer.json").write_bytes(files["tokenizer.json"])
    (corpus / "pair").write_bytes(files["vocab.json"] + b"\0" + files["merges.txt"])
    (corpus / "text").write_bytes("\n".join(TEXTS.values()).encode())


if __name__ == "__main__":
    main()
