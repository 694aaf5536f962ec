"""Writes tfrecord_samples.h: small shards in files of the tfrecord library's making.

  pip install tfrecord==1.14.6 'protobuf<4' numpy pillow
  python3 tests/unit/data/samples/tfrecord_samples.py
"""
import pathlib
import tempfile

import tfrecord

import samples_header
from shard_pictures import FILES, LABELS


def shard(records):
    with tempfile.TemporaryDirectory() as directory:
        path = pathlib.Path(directory) / "x.tfrecord"
        writer = tfrecord.TFRecordWriter(str(path))
        for record in records:
            writer.write(record)
        writer.close()
        return path.read_bytes()


def as_datasets(name):
    """As TensorFlow Datasets writes them."""
    return {"image": (FILES[name], "byte"), "label": (LABELS[name], "int"),
            "file_name": (name.encode(), "byte"), "weight": (0.5, "float")}


def as_imagenet(name):
    return {"image/height": (7, "int"), "image/width": (9, "int"), "image/format": (b"JPEG", "byte"),
            "image/encoded": (FILES[name], "byte"), "image/class/label": (LABELS[name], "int"),
            "image/object/bbox/label": ([], "int"), "thumbnail": (FILES["grey"], "byte")}


SAMPLES = {
    **{f"{name}_file": data for name, data in FILES.items()},
    "datasets": shard([as_datasets(name) for name in FILES]),
    "imagenet": shard([as_imagenet(name) for name in ("red", "blue")]),
    "empty": b"",
    "two_images": shard([{"a": (FILES["red"], "byte"), "b": (FILES["blue"], "byte"),
                          "label": (1, "int")}]),
    "several_values": shard([{"image": ([FILES["red"], FILES["blue"]], "byte"),
                              "label": (1, "int")}]),
    "no_label": shard([{"image": (FILES["red"], "byte"), "a": (1, "int"), "b": (2, "int")}]),
    "negative_label": shard([{"image": (FILES["red"], "byte"), "label": (-1, "int")}]),
    "other_numbers": shard([{"image": (FILES["red"], "byte"), "n": (3, "int"),
                             "many": ([1, 2], "int")}]),
    "texts": shard([{"text": (b"no image", "byte"), "label": (1, "int")}]),
}

if __name__ == "__main__":
    samples_header.write(__file__, "tfrecord 1.14.6", "tfrecord", SAMPLES)
