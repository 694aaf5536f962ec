"""Files of arrays, tensors and tables, as small as their formats allow."""
import csv
import json
import random
import struct


def colour_planes(count, side, classes, seed):
    """Labels, and images of as many planes of (R, G, B), which are the brighter the larger it is."""
    rng = random.Random(seed)
    for _ in range(count):
        label = rng.randrange(classes)
        yield label, [bytes(rng.randrange(20 * label, 20 * label + 60) for _ in range(side * side))
                      for _ in range(3)]


def npy(dtype, shape, content):
    text = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}"
    text = text.ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode() + content


def channels_last(count):
    """`count` images and their labels, as arrays."""
    made = list(colour_planes(count, 12, 4, seed=count))
    pixels = (bytes(x for pixel in zip(*rgb) for x in pixel) for _, rgb in made)
    return (npy("|u1", (count, 12, 12, 3), b"".join(pixels)),
            npy("<i8", (count,), struct.pack(f"<{count}q", *(label for label, _ in made))))


CLASSES = ["small", "middle, or so", "\"large\""]


def table(path, count, **dialect):
    """Writes `count` rows of four numbers and the name of a class, as Python's csv does."""
    rng = random.Random(count)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, **dialect)
        writer.writerow(["width", "class", "height, in mm", "weight", "always 7"])
        for _ in range(count):
            size = rng.randrange(3)
            writer.writerow([rng.gauss(size, 0.3), CLASSES[size], rng.uniform(-1, 1) * 1e20,
                             rng.gauss(-2 * size, 0.3) * 1e-9, 7])


def safetensors_file(tensors):
    """A file of (dtype, shape, content) by name."""
    header, offset = {}, 0
    for name, (dtype, shape, content) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape,
                        "data_offsets": [offset, offset + len(content)]}
        offset += len(content)
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + b"".join(t[2] for t in tensors.values())


def safetensors(path):
    data = path.read_bytes()
    length = struct.unpack("<Q", data[:8])[0]
    return json.loads(data[8:8 + length]), data[8 + length:]
