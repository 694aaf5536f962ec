"""Writes Parquet files with Arrow's own library. parquet_test.py runs this with the Python that has
it: `parquet_files.py tokens DIRECTORY`, `images FOLDER DIRECTORY`, `captions FILE`, `nulls FILE`,
`checked FILE`, `bomb FILE`, `same DIRECTORY PACKED`, `table DIRECTORY`, `rows DIRECTORY PACKED`,
`odd_tables DIRECTORY`."""
import pathlib
import random
import sys

import pyarrow
import pyarrow.ipc
import pyarrow.parquet

TOKENS = {"train-00000-of-00002": 700, "train-00001-of-00002": 450, "validation-00000-of-00001": 90}
CODECS = ["zstd", "snappy", "gzip"]


def tokens(directory):
    """Writes the tokens of documents of different lengths, each with a text column, and the same
    tokens as Arrow files."""
    rng = random.Random(7)
    for (name, documents), codec in zip(TOKENS.items(), CODECS):
        lists = [[rng.randrange(50) for _ in range(rng.randrange(1, 40))] for _ in range(documents)]
        # Long texts, so that it takes several batches.
        table = pyarrow.table({"text": ["-" * 200_000] * documents,
                               "input_ids": pyarrow.array(lists, pyarrow.list_(pyarrow.int32()))})
        for kind in ("parquet", "arrow"):
            (directory / kind).mkdir(parents=True, exist_ok=True)
        pyarrow.parquet.write_table(table, directory / "parquet" / f"{name}.parquet",
                                    compression=codec, row_group_size=128, use_dictionary=False)
        table = table.select(["input_ids"])
        with pyarrow.ipc.new_file(directory / "arrow" / f"{name}.arrow", table.schema) as out:
            out.write_table(table)


def images(folder, directory):
    """Images as Hugging Face's datasets write them, a file for each split."""
    for split in ("train", "val"):
        classes = sorted(path.name for path in (folder / split).iterdir())
        rows = [{"image": {"bytes": path.read_bytes(), "path": path.name},
                 "caption": f"an image of {path.parent.name}",
                 "label": classes.index(path.parent.name)}
                for path in sorted((folder / split).glob("*/*"))]
        (directory / split).mkdir(parents=True, exist_ok=True)
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows),
                                    directory / split / "data.parquet", row_group_size=7)


def captions(path):
    """A file without a column to train on."""
    pyarrow.parquet.write_table(pyarrow.table({"caption": ["a", "b"], "score": [0.5, 1.5]}), path)


def nulls(path):
    pyarrow.parquet.write_table(pyarrow.table({"input_ids": [[1, 2], None, [3]]}), path)


def checked(path):
    """A file with a checksum for each page."""
    column = pyarrow.array([[i % 50] * 20 for i in range(500)], pyarrow.list_(pyarrow.int32()))
    pyarrow.parquet.write_table(pyarrow.table({"input_ids": column}), path, compression="none",
                                use_dictionary=False, write_page_checksum=True)


def bomb(path):
    """Kilobytes that inflate to 100 GB: an image of a megabyte in the dictionary, and 100,000 rows
    of it."""
    image = pyarrow.DictionaryArray.from_arrays(pyarrow.array([0] * 100_000, pyarrow.int32()),
                                                pyarrow.array([bytes(1_000_000)], pyarrow.binary()))
    table = pyarrow.table({"image": image, "label": pyarrow.array([0] * 100_000)})
    pyarrow.parquet.write_table(table, path, compression="zstd", store_schema=False,
                                dictionary_pagesize_limit=2_000_000)


TABLES = {"train/a": (300, 1), "train/b": (200, 2), "val/c": (50, 3)}
KINDS = ["pear", "apple, green", 'a "fig"']


def table(directory):
    """Tables with a column for each feature, of all types of numbers, and words for labels. Two of
    the columns are called as pandas calls columns without names."""
    for name, (rows, seed) in TABLES.items():
        rng = random.Random(seed)
        kinds = [rng.choice(KINDS) for _ in range(rows)]
        columns = {
            "0": pyarrow.array([rng.gauss(KINDS.index(kind), 0.1) for kind in kinds],
                               pyarrow.float32()),
            "1": pyarrow.array([rng.uniform(-1e30, 1e30) for _ in kinds]),
            "size": pyarrow.array([rng.randrange(-2**40, 2**40) for _ in kinds], pyarrow.int64()),
            "ids": pyarrow.array([rng.randrange(200) for _ in kinds], pyarrow.uint8()),
            "label": pyarrow.array(kinds).dictionary_encode(),
            "is_old": pyarrow.array([rng.random() < 0.5 for _ in kinds]),
            "half": pyarrow.array([rng.random() for _ in kinds]).cast(pyarrow.float16())}
        path = directory / f"{name}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        pyarrow.parquet.write_table(pyarrow.table(columns), path, row_group_size=128)


def rows(directory, packed):
    """Compares every feature, as float32, and label, in order."""
    for split in ("train", "val"):
        wanted = [row for path in sorted((directory / split).glob("*.parquet"))
                  for row in pyarrow.parquet.read_table(path).to_pylist()]
        found = [row for path in sorted((packed / split).glob("*.arrow"))
                 for row in pyarrow.ipc.open_file(path).read_all().to_pylist()]
        assert len(found) == len(wanted), f"{split}: {len(found)} rows, wanted are {len(wanted)}"
        features = pyarrow.array([float(value) for row in wanted for name, value in row.items()
                                  if name != "label"]).cast(pyarrow.float32()).to_pylist()
        assert [value for row in found for value in row["features"]] == features, split
        labels = [sorted(KINDS).index(row["label"]) for row in wanted]
        assert [row["label"] for row in found] == labels, split


def odd_tables(directory):
    """Tables that a run cannot take: a value is missing, and a column is a date."""
    numbers = {"age": [1.5, 2, None, 4], "size": [1, 2, 3, 4]}
    pyarrow.parquet.write_table(pyarrow.table({**numbers, "label": [0, 1, 0, 1]}),
                                directory / "missing.parquet")
    dates = pyarrow.array([1, 2, 3, 4], pyarrow.timestamp("s"))
    pyarrow.parquet.write_table(
        pyarrow.table({"size": numbers["size"], "born": dates, "price": [0.5, 1.5, 2.5, 3.5]}),
        directory / "dates.parquet")


def same(directory, packed):
    """Compares every image and label, in order."""
    for split in ("train", "val"):
        rows = pyarrow.parquet.read_table(directory / split / "data.parquet").to_pylist()
        again = [row for path in sorted((packed / split).glob("*.arrow"))
                 for row in pyarrow.ipc.open_file(path).read_all().to_pylist()]
        wanted = [(row["image"]["bytes"], row["label"]) for row in rows]
        found = [(row["image"], row["label"]) for row in again]
        assert found == wanted, f"{split}: {len(found)} samples, wanted are {len(wanted)}"


if __name__ == "__main__":
    {"tokens": tokens, "images": images, "captions": captions, "nulls": nulls,
     "checked": checked, "bomb": bomb, "same": same, "table": table, "rows": rows,
     "odd_tables": odd_tables}[sys.argv[1]](
        *map(pathlib.Path, sys.argv[2:]))
