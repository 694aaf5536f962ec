"""A small data set of each format that takes a few lines to write, for tests of where data lie and
not of what they hold. ALL maps a name to the function that writes the files into a directory, and
to the arguments with which `lockstep data inspect` looks at them."""
import struct
import zipfile

import shard_files
from array_files import channels_last, colour_planes, npy, safetensors_file, table
from image_files import png

SPLITS = (("train", 60), ("val", 20))
BLOCK = ("--block", "8")


def arrays(directory):
    for split, count in SPLITS:
        for what, array in zip(("images", "labels"), channels_last(count)):
            (directory / f"{split}_{what}.npy").write_bytes(array)


def archive(directory):
    with zipfile.ZipFile(directory / "shapes.npz", "w", zipfile.ZIP_DEFLATED) as file:
        for split, count in SPLITS:
            for what, array in zip("xy", channels_last(count)):
                file.writestr(f"{what}_{split.replace('val', 'test')}.npy", array)


def tensors(directory):
    def of(split, count):
        made = list(colour_planes(count, 12, 4, seed=count))
        return {f"x_{split}": ("U8", [count, 3, 12, 12], b"".join(b"".join(p) for _, p in made)),
                f"y_{split}": ("U8", [count], bytes(label for label, _ in made))}
    (directory / "shapes.safetensors").write_bytes(
        safetensors_file({**of("train", 60), **of("test", 20)}))


def cifar(directory):
    for name in [f"data_batch_{i}.bin" for i in range(1, 6)] + ["test_batch.bin"]:
        (directory / name).write_bytes(b"".join(
            bytes([label]) + b"".join(planes)
            for label, planes in colour_planes(4, 32, 10, seed=len(name))))


def tables(directory):
    for split, count in SPLITS:
        table(directory / f"{split}.csv", count)


def texts(directory):
    for split, count in SPLITS:
        for part in "ab":
            (directory / f"{split}-{part}.txt").write_text(f"part {part} of it, and more\n" * count)


def numbers(count, code):
    return struct.pack(f"<{5 * count}{code}", *(i * 7 % 50 for i in range(5 * count)))


def bare_tokens(directory):
    for split, count in SPLITS:
        (directory / f"{split}.bin").write_bytes(numbers(count, "H"))


def tokens_with_a_header(directory):
    for split, count in SPLITS:
        (directory / f"{split}.bin").write_bytes(
            struct.pack("<256I", 20240520, 1, 5 * count, *[0] * 253) + numbers(count, "H"))


def token_arrays(directory):
    for split, count in SPLITS:
        (directory / f"{split}.npy").write_bytes(npy("<u4", f"({5 * count},)", numbers(count, "I")))


def token_tensors(directory):
    for split, count in SPLITS:
        (directory / f"{split}.safetensors").write_bytes(
            safetensors_file({"input_ids": ("I64", [5 * count], numbers(count, "q"))}))


def megatron(directory):
    for split, count in SPLITS:
        (directory / f"{split}.bin").write_bytes(numbers(count, "H"))
        (directory / f"{split}.idx").write_bytes(
            b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, 8, count, count + 1)
            + struct.pack(f"<{count}i", *[5] * count)
            + struct.pack(f"<{count}q", *range(0, 10 * count, 10))
            + struct.pack(f"<{count + 1}q", *range(count + 1)))


def tars(directory):
    for split, count in SPLITS:
        shard_files.tar(directory / f"{split}-000.tar", [
            (f"{i}.png", i % 3, png(20, 20, bytes([i]) * 1200)) for i in range(count)])


ALL = {"npy": (arrays, ()), "npz": (archive, ()), "safetensors": (tensors, ()),
       "cifar10": (cifar, ()), "csv": (tables, ()), "text": (texts, BLOCK),
       "tokens, bare": (bare_tokens, BLOCK), "tokens, header": (tokens_with_a_header, BLOCK),
       "tokens, npy": (token_arrays, BLOCK), "tokens, safetensors": (token_tensors, BLOCK),
       "megatron": (megatron, BLOCK), "webdataset": (tars, ())}
