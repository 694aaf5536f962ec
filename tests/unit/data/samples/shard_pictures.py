"""Four small pictures, as files, for the shards of the *_samples.py next to this file."""
import io

import PIL.Image

SIZES = {"red": (9, 7), "green": (5, 8), "blue": (6, 6), "grey": (4, 3)}


def encoded(name):
    width, height = SIZES[name]
    if name == "grey":
        image = PIL.Image.new("L", (width, height), 77)
    else:
        image = PIL.Image.new("RGB", (width, height), name)
    out = io.BytesIO()
    if name == "red":
        image.save(out, "JPEG", quality=80, optimize=True)
    else:
        image.save(out, "PNG")
    return out.getvalue()


LABELS = {"red": 2, "green": 0, "blue": 7, "grey": 1}
FILES = {name: encoded(name) for name in SIZES}
