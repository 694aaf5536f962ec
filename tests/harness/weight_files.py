"""The weights of runs, for tests of what goes in and comes out."""
import struct

from array_files import safetensors

# A run with this optimizer ends with the weights that it began with: no update reaches a bit of a
# weight that is not zero.
STILL = {"name": "sgd", "lr": 1e-30, "momentum": 0}


def tensors_in(path):
    """(shape, bytes) by name of a safetensors file, and its metadata."""
    header, data = safetensors(path)
    metadata = header.pop("__metadata__", {})
    return {name: (entry["shape"], data[slice(*entry["data_offsets"])])
            for name, entry in header.items()}, metadata


def newest_weights(run):
    """The file with the weights of the run's newest checkpoint."""
    return sorted((run.run_dir / "checkpoints").glob("step-*"))[-1] / "model.safetensors"


def turned(shape, content):
    """The transposed matrix."""
    rows, columns = shape
    values = struct.unpack(f"<{rows * columns}f", content)
    return [columns, rows], struct.pack(f"<{rows * columns}f",
                                        *(values[r * columns + c] for c in range(columns)
                                          for r in range(rows)))


def assert_same_weights(test, run, wanted):
    """The newest checkpoint has the tensors `wanted`, as tensors_in() gives them."""
    found, _ = tensors_in(newest_weights(run))
    test.assertEqual(set(found), set(wanted))
    for name, (shape, content) in wanted.items():
        if name.endswith("num_batches_tracked"):
            continue
        test.assertEqual(found[name][0], shape, name)
        count = len(content) // 4
        for one, other in zip(struct.unpack(f"<{count}f", found[name][1]),
                              struct.unpack(f"<{count}f", content)):
            test.assertAlmostEqual(one, other, delta=1e-20, msg=name)
