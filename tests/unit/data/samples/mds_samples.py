"""Writes mds_samples.h: small data sets in files of MosaicML Streaming's making.

  pip install mosaicml-streaming==0.13.0 pillow && python3 tests/unit/data/samples/mds_samples.py
"""
import pathlib
import tempfile

import PIL.Image
from streaming import MDSWriter

import samples_header
from shard_pictures import FILES, LABELS


def written(columns, samples, **options):
    """Contents of the files by their names."""
    with tempfile.TemporaryDirectory() as directory:
        with MDSWriter(out=directory, columns=columns, **options) as writer:
            for sample in samples:
                writer.write(sample)
        return {path.name: path.read_bytes() for path in pathlib.Path(directory).iterdir()}


def named(prefix, files):
    return {f"{prefix}/{name}": data for name, data in sorted(files.items())}


def pictures(*names):
    return [{"image": FILES[name], "label": LABELS[name], "name": name, "score": i / 4}
            for i, name in enumerate(names)]


SAMPLES = {
    **{f"{name}_file": data for name, data in FILES.items()},
    **named("bytes", written({"image": "bytes", "label": "int", "name": "str", "score": "float32"},
                             pictures(*FILES), size_limit=1_000)),
    **named("png", written({"x": "png", "class": "uint16", "id": "int64"},
                           [{"x": PIL.Image.new("RGB", (6 + i, 5), "blue"), "class": 3 - i, "id": -5}
                            for i in range(3)])),
    **named("compressed", written({"image": "bytes", "label": "int"},
                                  [{"image": FILES["red"], "label": 1}], compression="zstd")),
    **named("no_label", written({"image": "bytes", "a": "int", "b": "int"},
                                [{"image": FILES["red"], "a": 1, "b": 2}])),
    **named("tokens", written({"tokens": "ndarray:uint16:4"}, [])),
    **named("negative", written({"image": "bytes", "label": "int8"},
                                [{"image": FILES["red"], "label": -3}])),
}

if __name__ == "__main__":
    samples_header.write(__file__, "mosaicml-streaming 0.13.0", "mds", SAMPLES)
