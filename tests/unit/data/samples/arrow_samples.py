"""Writes arrow_samples.h: small files that Arrow's own library wrote.

  pip install pyarrow==25.0.0 pillow && python3 tests/unit/data/samples/arrow_samples.py
"""
import json
import pathlib
import tempfile

import pyarrow
import pyarrow.feather
import pyarrow.ipc

import samples_header
from shard_pictures import FILES, LABELS

NAMES = list(FILES)
HF_CLASSES = json.dumps({"info": {"features": {
    "image": {"_type": "Image"},
    "label": {"_type": "ClassLabel", "names": [f"class {i}" for i in range(9)]}}}})


def written(table, batch_rows=None, compression=None, stream=False):
    sink = pyarrow.BufferOutputStream()
    options = pyarrow.ipc.IpcWriteOptions(compression=compression)
    make = pyarrow.ipc.new_stream if stream else pyarrow.ipc.new_file
    with make(sink, table.schema, options=options) as writer:
        writer.write_table(table, max_chunksize=batch_rows)
    return sink.getvalue().to_pybytes()


def feather(table):
    """With its defaults, which are LZ4."""
    with tempfile.TemporaryDirectory() as directory:
        path = pathlib.Path(directory) / "x.feather"
        pyarrow.feather.write_feather(table, path)
        return path.read_bytes()


def table(columns, metadata=None):
    names, arrays = zip(*columns.items())
    return pyarrow.table(list(arrays), names=list(names), metadata=metadata)


def pictures(image_type=pyarrow.binary(), label_type=pyarrow.int64()):
    return {"image": pyarrow.array([FILES[name] for name in NAMES], image_type),
            "name": pyarrow.array(NAMES),
            "label": pyarrow.array([LABELS[name] for name in NAMES], label_type)}


def hugging_face():
    """As datasets writes them: a struct, names of classes in metadata."""
    image = pyarrow.array([{"bytes": FILES[name], "path": name} for name in NAMES],
                          pyarrow.struct([("bytes", pyarrow.binary()), ("path", pyarrow.string())]))
    label = pyarrow.array([LABELS[name] for name in NAMES], pyarrow.int64())
    return table({"image": image, "label": label}, {"huggingface": HF_CLASSES})


def counting(shape, count):
    size = 1
    for n in shape:
        size *= n
    return [bytes((i * size + k) % 256 for k in range(size)) for i in range(count)]


def pixels(column, labels=(3, 0, 2, 1)):
    return table({"image": column, "label": pyarrow.array(labels, pyarrow.uint8())})


def fixed_lists(shape, count=4):
    size = 1
    for n in shape:
        size *= n
    return pyarrow.FixedSizeListArray.from_arrays(
        pyarrow.array(list(b"".join(counting(shape, count))), pyarrow.uint8()), size)


def tensor(shape, names=None):
    kind = pyarrow.fixed_shape_tensor(pyarrow.uint8(), shape, dim_names=names)
    return pyarrow.ExtensionArray.from_storage(kind, fixed_lists(shape))


def nested(height, width):
    rows = pyarrow.FixedSizeListArray.from_arrays(fixed_lists((height, width)).values, width)
    return pyarrow.FixedSizeListArray.from_arrays(rows, height)


def fixed_binary(shape):
    size = len(counting(shape, 1)[0])
    field = pyarrow.field("image", pyarrow.binary(size), metadata={"shape": json.dumps(shape)})
    image = pyarrow.array(counting(shape, 4), pyarrow.binary(size))
    return pyarrow.table([image, pyarrow.array([3, 0, 2, 1])],
                         schema=pyarrow.schema([field, ("label", pyarrow.int64())]))


def tokens(kind, lists=((100, 101, 102), (), (103, 104), (105, 106, 107, 108, 109))):
    return table({"input_ids": pyarrow.array([list(row) for row in lists], kind)})


def deep(levels):
    kind = pyarrow.int32()
    for _ in range(levels):
        kind = pyarrow.list_(kind)
    return table({"label": pyarrow.array([1], pyarrow.int64()), "deep": pyarrow.array([None], kind)})


def rows(**changed):
    """Rows of features with targets of every type and a weight."""
    features = pyarrow.FixedSizeListArray.from_arrays(
        pyarrow.array([i / 2 for i in range(10)], pyarrow.float32()), 2)
    box = pyarrow.FixedSizeListArray.from_arrays(
        pyarrow.array(range(15), pyarrow.int16()), 3)
    columns = {"features": features, "box": box,
               "price": pyarrow.array([0.5, -2, 3.25, 4, 5], pyarrow.float64()),
               "kind": pyarrow.array([0, 2, 1, 0, 1], pyarrow.int32()),
               "count": pyarrow.array([7, -1, 5, 4, 3], pyarrow.int64()),
               "w": pyarrow.array([0, 1, 2, 1, 3], pyarrow.uint8()),
               "name": pyarrow.array(["a", "b", "c", "d", "e"])}
    return table({**columns, **changed})


LIST = pyarrow.list_

SAMPLES = {
    **{f"{name}_file": data for name, data in FILES.items()},
    "encoded": written(table(pictures()), 3),
    "encoded_large": written(table(pictures(pyarrow.large_binary(), pyarrow.uint16()))),
    "encoded_stream": written(table(pictures()), 2, stream=True),
    "encoded_lz4": written(table(pictures()), 3, "lz4"),
    "encoded_zstd": written(table(pictures()), 3, "zstd"),
    "encoded_feather": feather(table(pictures())),
    "encoded_view": written(table(pictures(pyarrow.binary_view()))),
    "hugging_face": written(hugging_face(), stream=True),
    "hugging_face_zstd": written(hugging_face(), 3, "zstd"),
    "tensor_hwc": written(pixels(tensor((3, 5, 3), ["H", "W", "C"])), 3),
    "tensor_chw": written(pixels(tensor((3, 5, 3), ["C", "H", "W"]))),
    "tensor_open": written(pixels(tensor((3, 5, 3)))),
    "tensor_grey": written(pixels(tensor((5, 6))), 1),
    "tensor_grey_zstd": written(pixels(tensor((5, 6))), 1, "zstd"),
    "nested": written(pixels(nested(5, 6))),
    "fixed_binary": written(fixed_binary((5, 6, 1))),
    "shapeless": written(pixels(fixed_lists((5, 6)))),
    "list_uint16": written(tokens(LIST(pyarrow.uint16()))),
    "list_int32_batches": written(tokens(LIST(pyarrow.int32())), 1),
    "large_list_int64": written(tokens(pyarrow.large_list(pyarrow.int64())), 2),
    "fixed_list_uint32": written(tokens(LIST(pyarrow.uint32(), 5),
                                        [range(100, 105), range(105, 110)]), 1),
    "flat_uint16": written(table({"tokens": pyarrow.array(range(100, 110), pyarrow.uint16())}), 4),
    "flat_uint16_lz4": written(table({"tokens": pyarrow.array(range(100, 110), pyarrow.uint16())}),
                               4, "lz4"),
    "text_bytes": written(table({"tokens": pyarrow.array(list(b"hello world"), pyarrow.uint8())})),
    "negative_token": written(tokens(LIST(pyarrow.int64()), [[1, 2, -3, 4, 5, 6]])),
    "rows": written(rows(), 3),
    "rows_zstd": written(rows(), 3, "zstd"),
    "rows_not_finite": written(rows(price=pyarrow.array([1, 2, 3, float("inf"), 5],
                                                        pyarrow.float64())), 3),
    "null_label": written(table({**pictures(), "label": pyarrow.array([1, None, 2, 3])})),
    "null_image": written(table({**pictures(), "image": pyarrow.array(
        [None, *[FILES[name] for name in NAMES[1:]]], pyarrow.binary())})),
    "negative_label": written(table({**pictures(), "label": pyarrow.array([1, -3, 2, 3])})),
    "dictionary_label": written(table({**pictures(), "label": pyarrow.array(
        NAMES).dictionary_encode()})),
    "dictionary_beside": written(table({**pictures(), "name": pyarrow.array(
        NAMES).dictionary_encode()})),
    "no_label": written(table({"image": pictures()["image"], "name": pictures()["name"]})),
    "text_only": written(table({"text": pyarrow.array(["a", "b"])})),
    "no_image": written(table({"image": pyarrow.array([b"GIF89a"]), "label": pyarrow.array([1])})),
    "no_batches": written(table({"tokens": pyarrow.array([], pyarrow.uint16())})),
    "deep": written(deep(20)),
    "bomb": written(table({"tokens": pyarrow.array([0] * 20_000_000, pyarrow.uint8())}),
                    compression="zstd"),
}

if __name__ == "__main__":
    samples_header.write(__file__, f"pyarrow {pyarrow.__version__}", "arrow", SAMPLES)
