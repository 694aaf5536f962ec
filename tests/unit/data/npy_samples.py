"""Writes npy_samples.h: small arrays in files of NumPy's own making.

  pip install numpy && python3 tests/unit/data/npy_samples.py
"""
import io
import pathlib

import numpy

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
    text = (f"// Files that numpy {numpy.__version__} wrote, in hex; made by npy_samples.py.\n"
            "#pragma once\n\n#include <map>\n#include <string>\n\n"
            "namespace lockstep::data {\n\n// clang-format off\n"
            "inline const std::map<std::string, std::string> kNpySamples = {\n")
    for name, data in SAMPLES.items():
        hex_text = data.hex()
        lines = [hex_text[i:i + 92] for i in range(0, len(hex_text), 92)]
        text += f'  {{"{name}",\n' + "\n".join(f'   "{line}"' for line in lines) + "},\n"
    text += ("};\n// clang-format on\n\n"
             "// Bytes of a sample. REQUIRES: it is there.\n"
             "inline std::string npy_sample(const std::string& name) {\n"
             "  const std::string& hex = kNpySamples.at(name);\n"
             "  std::string bytes;\n"
             "  for (size_t i = 0; i < hex.size(); i += 2)\n"
             "    bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));\n"
             "  return bytes;\n}\n\n}  // namespace lockstep::data\n")
    pathlib.Path(__file__).with_suffix(".h").write_text(text)
