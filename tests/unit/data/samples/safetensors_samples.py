"""Writes safetensors_samples.h: small files that the safetensors package wrote, and some of them as
files for the fuzzer (tests/fuzz/corpus/safetensors).

  pip install safetensors numpy && python3 tests/unit/data/samples/safetensors_samples.py
"""
import pathlib

import numpy
import safetensors
from safetensors.numpy import save

import samples_header

PIXELS = (numpy.arange(4 * 5 * 6) % 256).astype("uint8").reshape(4, 5, 6)
LABELS = numpy.array([3, 0, 2, 1], "int64")
COLOURS = (numpy.arange(4 * 3 * 5 * 6) % 251).astype("uint8").reshape(4, 3, 5, 6)
TOKENS = numpy.arange(11) + 100


def tokens(dtype, **more):
    return save({"input_ids": TOKENS.astype(dtype), **more})


SAMPLES = {
    "mnist": save({"x_train": PIXELS, "y_train": LABELS, "x_test": PIXELS[:2] + 100,
                   "y_test": LABELS[:2].astype("uint8"),
                   "scale": numpy.ones(3, "float32")}, metadata={"made": "for tests"}),
    "pair": save({"images": PIXELS, "labels": LABELS.astype("int32").reshape(4, 1)}),
    "colours": save({"images": COLOURS, "labels": LABELS.astype("uint16")}),
    "colours_last": save({"images": numpy.ascontiguousarray(COLOURS.transpose(0, 2, 3, 1)),
                          "labels": LABELS}),
    "either": save({"images": numpy.zeros((2, 3, 5, 3), "uint8"), "labels": LABELS[:2]}),
    "floats": save({"images": PIXELS.astype("float32"), "labels": LABELS}),
    "float_labels": save({"images": PIXELS, "labels": LABELS.astype("float64")}),
    "fewer_labels": save({"images": PIXELS, "labels": LABELS[:3]}),
    "unlabelled": save({"images": PIXELS}),
    "no_images": save({"images": PIXELS[:0], "labels": LABELS[:0]}),
    "tokens_u16": tokens("uint16"),
    "tokens_u32": tokens("uint32"),
    "tokens_i32": tokens("int32"),
    "tokens_i64": tokens("int64"),
    "tokens_negative": save({"ids": numpy.array([5, 6, 7, 8, -9, 1], "int64")}),
    "tokens_huge": save({"ids": numpy.array([5, 6, 7, 8, 2**40, 1], "int64")}),
    "tokens_f32": tokens("float32"),
    "tokens_table": save({"ids": TOKENS[:10].astype("uint16").reshape(2, 5)}),
    "two_tensors": tokens("uint16", mask=numpy.ones(11, "uint8")),
    "nothing": save({}),
}

if __name__ == "__main__":
    samples_header.write(__file__, f"safetensors {safetensors.__version__}", "safetensors",
                         SAMPLES)
    corpus = pathlib.Path(__file__).resolve().parents[3] / "fuzz" / "corpus" / "safetensors"
    corpus.mkdir(parents=True, exist_ok=True)
    for name in ("mnist", "pair", "tokens_i64", "nothing"):
        (corpus / name).write_bytes(SAMPLES[name])
