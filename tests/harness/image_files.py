"""Small images, and directories of them, whose class can be learnt."""
import random
import struct
import subprocess
import zlib

CLASSES = ("apple", "pear", "plum")
EACH, EVALUATION = 40, 10  # images of a class


def pixels(label, width, height, rng):
    """Brighter the larger the label is, in (R, G, B) after (R, G, B)."""
    return bytes(min(255, 70 * label + rng.randrange(50) + (x % width) * 20 // width)
                 for x in range(width * height) for _ in range(3))


def png(width, height, colours):
    def chunk(kind, content):
        return (struct.pack(">I", len(content)) + kind + content
                + struct.pack(">I", zlib.crc32(kind + content)))
    rows = b"".join(b"\0" + colours[3 * width * y:3 * width * (y + 1)] for y in range(height))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
            + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def jpeg(width, height, colours):
    """The image as libjpeg-turbo's own program encodes it."""
    image = b"P6 %d %d 255\n" % (width, height) + colours
    return subprocess.run(["cjpeg", "-quality", "90"], input=image, stdout=subprocess.PIPE,
                          check=True).stdout


def write_images(directory, each, seed):
    """images() as files, in directories of classes. Returns `directory`."""
    for name, _, content in images(each, seed):
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return directory


def images(each, seed):
    """Name, label and content of images of several sizes, every fourth one PNG."""
    rng = random.Random(seed)
    for i in range(each):
        for label, name in enumerate(CLASSES):
            width, height = rng.randrange(20, 60), rng.randrange(20, 60)
            colours = pixels(label, width, height, rng)
            if i % 4 == 0:
                yield f"{name}/{i:03d}.png", label, png(width, height, colours)
            else:
                yield f"{name}/{i:03d}.jpg", label, jpeg(width, height, colours)
