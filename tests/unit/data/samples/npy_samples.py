"""Writes npy_samples.h: small arrays in files of NumPy's own making.

  pip install numpy && python3 tests/unit/data/samples/npy_samples.py
"""
import io

import numpy

import samples_header

COUNT = numpy.arange(100, 111)
PIXELS = (numpy.arange(4 * 5 * 6 * 3) % 256).astype("uint8").reshape(4, 5, 6, 3)


def saved(array, version=(1, 0)):
    out = io.BytesIO()
    numpy.lib.format.write_array(out, numpy.asanyarray(array), version=version)
    return out.getvalue()


SAMPLES = {
    # 100 to 110
    "tokens_uint16": saved(COUNT.astype("<u2")),
    "tokens_uint32_version_2": saved(COUNT.astype("<u4"), (2, 0)),
    "tokens_int32_version_3": saved(COUNT.astype("<i4"), (3, 0)),
    "tokens_int64": saved(COUNT.astype("<i8")),
    "tokens_negative": saved(numpy.array([1, 2, -7, 4, 5, 6], "<i4")),
    # counting from 0, modulo 256
    "images_nhw": saved(PIXELS.reshape(4, 15, 6)),
    "images_nhwc": saved(PIXELS),
    "images_nchw": saved(PIXELS.transpose(0, 3, 1, 2).copy()),
    "images_either": saved(PIXELS.reshape(4, 3, 30, 1)),
    "labels_int64": saved(numpy.array([3, 0, 2, 1], "<i8")),
    "labels_uint8": saved(numpy.array([3, 0, 2, 1], "u1")),
    "labels_column": saved(numpy.array([[3], [0], [2], [1]], "u1")),
    "labels_negative": saved(numpy.array([3, -1, 2, 1], "<i2")),
    "labels_large": saved(numpy.array([3, 0, 2**63 + 5, 1], "<u8")),
    "labels_float": saved(numpy.array([3, 0, 2, 1], "<f4")),
    # what is refused
    "fortran_order": saved(numpy.asfortranarray(PIXELS)),
    "big_endian": saved(COUNT.astype(">u2")),
    "python_objects": saved(numpy.array([1, "a"], dtype=object)),
    "structured": saved(numpy.array([(1, 2.0)], dtype=[("label", "<i4"), ("x", "<f4")])),
    "texts": saved(numpy.array(["cat", "dog"])),
    "dates": saved(numpy.array(["2026-01-01"], dtype="datetime64[D]")),
    "scalar": saved(numpy.uint16(7)),
}

if __name__ == "__main__":
    samples_header.write(__file__, f"numpy {numpy.__version__}", "npy", SAMPLES)
