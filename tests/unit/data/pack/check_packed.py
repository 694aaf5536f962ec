"""Reads what `lockstep data pack` wrote with Arrow's own library, and compares it with what Lockstep
sees: rows, labels, shapes, and that every buffer is valid and aligned.

  pip install pyarrow==25.0.0 && python3 tests/unit/data/pack/check_packed.py build/release/bin/lockstep DIR
"""
import collections
import json
import pathlib
import subprocess
import sys

import pyarrow
import pyarrow.ipc

ALIGNED = 64


def batches_of(path):
    with pyarrow.memory_map(str(path)) as source:
        reader = pyarrow.ipc.open_file(source)
        for i in range(reader.num_record_batches):
            yield reader.get_batch(i), source


def is_compressed(plan):
    return plan["compression"] != "none"


def check_batch(batch, plan, path):
    batch.validate(full=True)
    for column in batch.columns:
        assert column.null_count == 0, path
        for buffer in column.buffers():
            aligned = buffer is None or buffer.size == 0 or buffer.address % ALIGNED == 0
            assert is_compressed(plan) or aligned, f"{path}: {column.type} is not aligned"


def rows_of(batch):
    """Samples, or tokens: of lists those that are in them."""
    first = batch.column(0)
    return len(first.flatten()) if pyarrow.types.is_list(first.type) else batch.num_rows


def check_split(directory, seen, plan):
    rows, labels = 0, collections.Counter()
    for path in sorted(directory.glob("*.arrow")):
        for batch, _ in batches_of(path):
            check_batch(batch, plan, path)
            rows += rows_of(batch)
            if "label" in batch.schema.names:
                labels.update(batch.column("label").to_pylist())
                kind = batch.schema.field("image").type
    if seen["tokens"] > 0:
        assert rows >= seen["samples"] * seen["tokens"], (rows, seen["samples"])
        return rows
    assert rows == seen["samples"], (rows, seen["samples"])
    assert [labels[i] for i in range(seen["classes"])] == seen["class_counts"]
    if isinstance(kind, pyarrow.FixedShapeTensorType):
        assert sorted(kind.shape) == sorted(seen["shape"]), (kind.shape, seen["shape"])
    return rows


def main(lockstep, directory):
    directory = pathlib.Path(directory)
    plan = json.loads((directory / "pack.json").read_text())
    seen = json.loads(subprocess.run([lockstep, "data", "inspect", str(directory), "--json"],
                                     capture_output=True, text=True, check=True).stdout)
    assert len(plan["splits"]) == len(seen["splits"])
    for split, inspected in zip(plan["splits"], seen["splits"]):
        rows = check_split(directory / split["split"], inspected, plan)
        print(f"{directory / split['split']}: {rows} rows, as Lockstep sees them")


if __name__ == "__main__":
    main(*sys.argv[1:])
