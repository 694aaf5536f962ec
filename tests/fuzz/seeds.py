"""Writes the seeds of parsers whose files no library writes: corpus/NAME/*, each sound or wrong in
one place. Run it in this directory after a change; the files are committed. (The manifest `run`
comes from a real run, and tests/unit/data/samples/arrow_samples.py writes the seeds of
arrow_tokens.)"""
import gzip
import json
import pathlib
import struct
import zipfile

CORPUS = pathlib.Path(__file__).with_name("corpus")


def put(name, seeds):
    (CORPUS / name).mkdir(exist_ok=True)
    for seed, content in seeds.items():
        content = content if isinstance(content, bytes) else content.encode()
        (CORPUS / name / seed).write_bytes(content)


def idx(kind, *dims):
    return bytes([0, 0, kind, len(dims)]) + b"".join(struct.pack(">I", d) for d in dims)


def npy(dtype, shape, content=b"", version=1, order="False"):
    text = f"{{'descr': '{dtype}', 'fortran_order': {order}, 'shape': ({shape}), }}".encode()
    size = struct.pack("<H" if version == 1 else "<I", len(text) + 1)
    return b"\x93NUMPY" + bytes([version, 0]) + size + text + b"\n" + content


def megatron(code, sizes, documents, dtype):
    places = [dtype * sum(sizes[:i]) for i in range(len(sizes))]
    return (b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, code, len(sizes), len(documents))
            + struct.pack(f"<{len(sizes)}i", *sizes) + struct.pack(f"<{len(sizes)}q", *places)
            + struct.pack(f"<{len(documents)}q", *documents))


def llmc(magic, version, count, content):
    return struct.pack("<256I", magic, version, count, *[0] * 253) + content


def frame(kind, payload, length=None):
    return struct.pack("<IB", len(payload) if length is None else length, kind) + payload


images, labels = idx(8, 2, 3, 4) + bytes(range(24)), idx(8, 5) + bytes(range(5))
put("idx_header", {
    "images": images, "labels": labels, "short": images[:-3], "long": labels + b"more",
    "zero": idx(8, 0, 28, 28), "floats": idx(13, 2, 2) + bytes(16), "huge": idx(8, *[2**31 - 1] * 3)})

packed = gzip.compress(images, mtime=0)
put("idx_gzip", {
    "images": packed, "labels": gzip.compress(labels, mtime=0), "cut": packed[:-9],
    "two": gzip.compress(images[:20], mtime=0) + gzip.compress(images[20:], mtime=0),
    "sum": packed[:-8] + b"\0\0\0\0" + packed[-4:], "behind": packed + b"no gzip",
    "more": gzip.compress(images + bytes(100), mtime=0), "no_idx": gzip.compress(b"text", mtime=0)})

def zstd(content, last=True, size=None):
    """A frame of one stored block."""
    size = len(content) if size is None else size
    return (struct.pack("<IBB", 0xFD2FB528, 0x20, size)
            + struct.pack("<I", len(content) << 3 | last)[:3] + content)


# The first byte: an index promises 24 bytes, or says nothing.
put("whole_file", {
    "gzip": b"\0" + packed, "gzip_promised": b"\1" + gzip.compress(bytes(range(24)), mtime=0),
    "gzip_cut": b"\0" + packed[:-9], "gzip_zeros": b"\0" + gzip.compress(bytes(100_000), mtime=0),
    "zstd": b"\0" + zstd(b"hello"), "zstd_two": b"\0" + zstd(b"hello") + zstd(b"there"),
    "zstd_promised": b"\1" + zstd(bytes(range(24))), "zstd_short": b"\1" + zstd(b"hello"),
    "zstd_not_last": b"\0" + zstd(b"hello", last=False), "zstd_size": b"\0" + zstd(b"hello", size=9),
    "zstd_skipped": b"\0" + struct.pack("<II", 0x184D2A50, 3) + b"xyz" + zstd(b"hello"),
    "zstd_window": b"\0" + struct.pack("<IBB", 0xFD2FB528, 0, 0xFF) + b"\1\0\0", "text": b"\0text"})

put("npy_header", {
    "images": npy("|u1", "2, 3, 4, 1", bytes(24)), "tokens": npy("<u2", "5,", bytes(10)),
    "labels": npy("<i8", "3,", struct.pack("<3q", 0, 2, -1)), "wide": npy("<u4", "1,", bytes(4), 2),
    "utf8": npy("<i4", "2,", bytes(8), 3), "fortran": npy("|u1", "2, 2", bytes(4), 1, "True"),
    "scalar": npy("|u1", "", b"\7"), "huge": npy("|u1", "4294967296, 4294967296, 2"),
    "structured": npy("[('a', '<i4')]", "1,", bytes(4)),
    "text": "{'descr': '<u2', 'fortran_order': False, 'shape': (5,), }\n"})

put("megatron_index", {
    "two_documents": megatron(8, [3, 2, 4], [0, 2, 3], 2), "int32": megatron(4, [5], [0, 1], 4),
    "empty": megatron(8, [], [0], 2), "backwards": megatron(8, [3, 2], [0, 2, 1], 2),
    "beyond": megatron(8, [3, 2], [0, 7], 2), "negative": megatron(8, [3, -2], [0, 2], 2),
    "int64": megatron(5, [3], [0, 1], 8), "cut": megatron(8, [3, 2], [0, 2], 2)[:-5]})

tokens = struct.pack("<6H", 1, 2, 3, 50256, 4, 5)
put("token_range", {
    "bare": tokens, "odd": tokens[:-1], "llmc": llmc(20240520, 1, 6, tokens),
    "llmc_u32": llmc(20240801, 7, 3, tokens), "llmc_cut": llmc(20240520, 1, 7, tokens),
    "llmc_version": llmc(20240520, 2, 6, tokens), "npy": npy("<u2", "6,", tokens),
    "npy_signed": npy("<i4", "3,", tokens), "text": "to be or not to be"})

hello = b"\x08\x05\x12\x20" + bytes(range(32))  # fields 1 and 2
greeting = b"LOCKSTP\x05" + frame(1, hello) + frame(16, b"\x08\x02")
put("frames", {
    "greeting": b"\1\3" + greeting, "no_preamble": b"\0\xff" + frame(16, b"\x08\x02") * 3,
    "another_version": b"\1\7LOCKSTP\x07", "unknown_kind": b"\0\1" + frame(9, b"x"),
    "too_long": b"\0\1" + frame(16, b"", 2**31), "cut": b"\1\0" + greeting[:-1],
    "bad_message": b"\0\4" + frame(16, b"\x0a\xff\xff\xff\xff\x0f"), "empty": b"\0\0" + frame(2, b"")})

run = json.loads((CORPUS / "manifest" / "run").read_text())
put("manifest", {
    "no_records": json.dumps({**run, "unacknowledged": []}),
    "newer": json.dumps({**run, "format": 2}),
    "outside": json.dumps({**run, "files": [{"name": "../x", "bytes": 1, "sha256": "00"}]}),
    "negative": json.dumps({**run, "step": -1}), "no_files": json.dumps({**run, "files": 3}),
    "list": "[]", "cut": json.dumps(run)[:200]})



def tensor(name, section, dtype, *dims):
    return (struct.pack("<H", len(name)) + name + bytes([section, dtype, len(dims)])
            + struct.pack(f"<{len(dims)}Q", *dims))


weight, moment = tensor(b"fc.weight", 0, 0, 3, 5), tensor(b"exp_avg.fc.weight", 2, 0, 3, 5)
put("state_table", {
    "sound": struct.pack("<I", 3) + weight + tensor(b"bn.batches", 1, 2) + moment,
    "empty": struct.pack("<I", 0), "cut": (struct.pack("<I", 2) + weight + moment)[:-3],
    "longer": struct.pack("<I", 1) + weight + moment, "twice": struct.pack("<I", 2) + 2 * weight,
    "too_many": struct.pack("<I", 1 << 31) + weight,
    "unnamed": struct.pack("<I", 1) + tensor(b"", 0, 0, 3),
    "section": struct.pack("<I", 1) + tensor(b"a", 3, 0, 3),
    "dtype": struct.pack("<I", 1) + tensor(b"a", 0, 200, 3),
    "dimensions": struct.pack("<I", 1) + tensor(b"a", 0, 0, *[1] * 17),
    "negative": struct.pack("<I", 1) + tensor(b"a", 0, 0, (1 << 64) - 1),
    "overflow": struct.pack("<I", 1) + tensor(b"a", 0, 0, 1 << 40, 1 << 40)})

put("job_file", {
    "images": "job: digits\nseed: 1\nmodel: {name: cnn, dropout: 0.1}\ndata:\n  train: {path: mnist}\n"
              "  transforms: [pad_crop=4, flip, normalize]\ntrain: {global_batch: 64, epochs: 2}\n"
              "optimizer: {name: sgd, lr: 0.1, momentum: 0.9}\nschedule: {name: cosine}\n",
    "tokens": "job: words\nmodel: {name: gpt2, size: d4, block: 64}\ndata:\n  train: {path: /t.txt}\n"
              "  documents: pack\n  document_end: 50256\ntrain: {global_batch: 16, max_steps: 10}\n",
    "mixture": "job: both\nmodel: {name: gpt2, size: d4, block: 8}\ndata:\n  train: {path: a}\n"
               "  mix:\n    - {path: b, weight: 0.5}\n    - {path: s3://c/d, weight: 2}\n"
               "  cache: {policy: pin, chunk_kb: 64}\n  cache_dir: /var/cache\n",
    "json": json.dumps({"job": "x", "model": {"name": "mlp"}, "data": {"train": {"path": "d"}},
                        "train": {"global_batch": 8}}),
    "unknown_key": "job: x\nmodle: {name: mlp}\n",
    "wrong_kind": "job: x\ntrain: {global_batch: many}\n",
    "no_map": "- 1\n- 2\n", "anchors": "a: &a [x, x]\nb: [*a, *a]\njob: *a\n", "cut": "job: {x: ["})

chunk = bytes(range(200))
ends = b"LKDOCS01" + struct.pack("<3Q", 2, 3, 8)
plan = {"pack": 1, "compression": "none", "shard_mb": 256, "splits": []}
put("kept_files", {
    "ends": b"\0" + ends, "ends_none": b"\0LKDOCS01" + struct.pack("<Q", 0),
    "ends_back": b"\0LKDOCS01" + struct.pack("<3Q", 2, 8, 3),
    "ends_beyond": b"\0LKDOCS01" + struct.pack("<2Q", 1, 9),
    "ends_count": b"\0LKDOCS01" + struct.pack("<3Q", 2**61 + 2, 3, 8),
    "ends_no_hash": b"\1" + ends + b"0" * 32,
    "chunk": b"\2\0\x10\0\x20" + chunk, "chunk_beyond": b"\2\0\xc0\0\x20" + chunk,
    "chunk_no_hash": b"\3\0\0\0\7" + chunk + b"0" * 32 + b"LKSCHK01" + struct.pack("<Q", 200)
                     + b"0" * 32,
    "chunk_huge": b"\3\0\0\0\7LKSCHK01" + struct.pack("<Q", 2**64 - 1) + b"0" * 32,
    "largest": b"\4lockstep tokens 1\nfingerprint k\nlargest 8\n",
    "largest_huge": b"\4lockstep tokens 1\nfingerprint k\nlargest 18446744073709551615\n",
    "largest_of_other": b"\4lockstep tokens 1\nfingerprint x\nlargest 8\n",
    "plan": b"\5" + json.dumps(plan).encode(), "plan_list": b"\5[1, 2]",
    "plan_kinds": b"\5" + json.dumps({**plan, "shard_mb": {"a": [1]}}).encode()})

# The first byte: 2 of the 2 requested bytes, 3 of 3 as a whole, none of 7.
put("sources", {"range_part": "\x21bytes 0-1/2", "range_end": "\x21bytes 5-6/7",
                "range_total": "\x21bytes 5-6/9", "range_huge": "\x21bytes 18446744073709551615-0/1",
                "range_whole": "\x32bytes 0-2/3", "range_short": "\x06bytes 0-6/7",
                "range_star": "\x21bytes */2", "range_negative": "\x21bytes -1-0/2"})

def exported():
    """The golden programs: whole, and the JSON of one and its two lists."""
    golden = pathlib.Path(__file__).parent.parent / "golden/exported"
    seeds = {"whole": (golden / "counted.pt2").read_bytes()}
    for name in ("counted", "regions"):
        with zipfile.ZipFile(golden / f"{name}.pt2") as archive:
            seeds[name] = b"\0".join(archive.read(f"{name}/{file}") for file in (
                "models/model.json", "data/weights/model_weights_config.json",
                "data/constants/model_constants_config.json"))
    return seeds


put("exported", exported())
