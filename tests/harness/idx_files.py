"""Images in IDX files, as of MNIST: any bytes, or a data set that a small model learns."""
import gzip
import random
import struct


def write_idx(path, magic, dims, payload, compress=False):
    data = struct.pack(">I", magic) + b"".join(struct.pack(">I", d) for d in dims) + payload
    opener = gzip.open if compress else open
    with opener(path, "wb") as f:
        f.write(data)


def synthetic_dataset(directory, train=600, evaluation=100, size=12, classes=4, seed=5):
    """A small learnable data set: the class is the bright quadrant."""
    directory.mkdir(parents=True, exist_ok=True)
    rng = random.Random(seed)
    for prefix, count in (("train", train), ("t10k", evaluation)):
        labels = bytes(rng.randrange(classes) for _ in range(count))
        pixels = bytearray()
        half = size // 2
        for label in labels:
            for y in range(size):
                for x in range(size):
                    bright = (y >= half) * 2 + (x >= half) == label
                    pixels.append(rng.randrange(150, 256) if bright else rng.randrange(0, 110))
        write_idx(directory / f"{prefix}-images-idx3-ubyte", 0x803, (count, size, size), bytes(pixels))
        write_idx(directory / f"{prefix}-labels-idx1-ubyte", 0x801, (count,), labels)
    return directory
