"""Every format of data in real runs, each found by itself: trained on, evaluated, replayed."""
import csv
import json
import struct
import unittest
import zipfile

import arrow_files
from array_files import CLASSES, channels_last, colour_planes, safetensors, safetensors_file, table
from harness import LockstepTest

TRAIN = {"global_batch": 40, "slots": 4, "epochs": 3}
EVALUATION = 60
AUGMENTED = ["pad_crop=4", "flip", "rotate=10", "brightness=0.2", "contrast=0.2", "saturation=0.2",
             "hue=0.1", "cutout=8", "normalize"]


def as_float32(text):
    return struct.pack("<f", float(text))


class Formats(LockstepTest):
    def inspect(self, path, *args):
        return json.loads(self.succeed("data", "inspect", path, "--json", *args))["splits"]

    def train(self, data, model, transforms=None):
        """Trains with one worker, and with two that stop in the middle of an epoch and then three.
        Returns the output of a replay of a step."""
        job = self.job(data, model=model, train=TRAIN)
        if transforms is not None:
            sections = json.loads(job.read_text())
            sections["data"]["transforms"] = transforms
            job.write_text(json.dumps(sections))
        one = self.finish(job, "--workers", 1, name="one")
        self.finish(job, "--workers", 2, "train.max_steps=3", name="two")
        two = self.finish(job, "--workers", 3, "--resume", "train.max_steps=0", name="two")
        self.assert_same_result(two, one)
        self.assertLess(one.history()[-1]["loss"], one.history()[0]["loss"])
        self.assertIn("eval_accuracy", one.summary())
        return self.succeed("replay", two.run_dir, "--step", 2)

    def assert_places(self, text, file):
        """Checks that a replay names this file (a pattern) for its samples, and their places."""
        self.assertRegex(text, rf"label \d  .*{file}\b.* \d+\n")

    def test_cifar10_below_the_directory_where_it_was_unpacked(self):
        inside = self.scratch / "data" / "cifar-10-batches-bin"
        inside.mkdir(parents=True)
        names = [f"data_batch_{i}.bin" for i in range(1, 6)] + ["test_batch.bin"]
        for seed, name in enumerate(names):
            records = (bytes([label]) + b"".join(planes)
                       for label, planes in colour_planes(EVALUATION, 32, 10, seed))
            (inside / name).write_bytes(b"".join(records))
        splits = self.inspect(inside.parent)
        self.assertEqual([(s["split"], s["format"], s["samples"]) for s in splits],
                         [("train", "cifar10", 300), ("eval", "cifar10", EVALUATION)])
        text = self.train(inside.parent, {"name": "mlp"}, AUGMENTED)
        self.assert_places(text, rf"{inside}/data_batch_\d\.bin")

    def test_numpy_arrays_with_the_channels_last(self):
        data = self.scratch / "data"
        data.mkdir()
        for split, count in (("train", 200), ("val", EVALUATION)):
            for what, array in zip(("images", "labels"), channels_last(count)):
                (data / f"{split}_{what}.npy").write_bytes(array)
        splits = self.inspect(data)
        self.assertEqual([(s["format"], s["samples"], s["shape"]) for s in splits],
                         [("npy", 200, [3, 12, 12]), ("npy", EVALUATION, [3, 12, 12])])
        self.assert_places(self.train(data, {"name": "cnn"}), "train_images.npy")

    def test_stored_images_cut_and_scaled_to_another_size(self):
        data = self.scratch / "data"
        data.mkdir()
        for split, count in (("train", 200), ("val", EVALUATION)):
            for what, array in zip(("images", "labels"), channels_last(count)):
                (data / f"{split}_{what}.npy").write_bytes(array)
        transforms = ["random_resized_crop=16", "flip", "normalize"]
        text = self.train(data, {"name": "cnn"}, transforms)
        self.assert_places(text, "train_images.npy")
        header, _ = safetensors(self.scratch / "two" / "replay-step-2.safetensors")
        self.assertEqual(header["images"]["shape"], [40, 3, 16, 16])

    def test_arrays_in_one_compressed_archive(self):
        data = self.scratch / "shapes.npz"
        with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
            for split, count in (("train", 200), ("test", EVALUATION)):
                for what, array in zip("xy", channels_last(count)):
                    archive.writestr(f"{what}_{split}.npy", array)
        splits = self.inspect(data)
        self.assertEqual([(s["split"], s["format"], s["samples"], s["shape"]) for s in splits],
                         [("train", "npz", 200, [3, 12, 12]),
                          ("eval", "npz", EVALUATION, [3, 12, 12])])
        self.assert_places(self.train(data, {"name": "cnn"}), "shapes.npz")

    def index(self, path, cache, *args):
        return self.succeed("data", "index", path, "--cache-dir", cache, *args)

    def test_a_job_begins_with_what_was_made_ahead(self):
        data = self.scratch / "shapes.npz"
        with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
            for split, count in (("train", 200), ("test", EVALUATION)):
                for what, array in zip("xy", channels_last(count)):
                    archive.writestr(f"{what}_{split}.npy", array)
        cache = self.scratch / "cache"
        text = self.index(data, cache)
        self.assertRegex(text, r"(?m)^train: 200 .*npz.* [0-9a-f]{32}$")
        self.assertRegex(text, r"shapes\.npz\.[0-9a-f]{16}\.inflated")
        self.assertIn(f"data.cache_dir: {cache}", text)

        def files():
            return {path.name: (path.stat().st_ino, path.stat().st_mtime_ns)
                    for path in cache.iterdir()}
        made = files()
        self.assertNotIn(".inflated", self.index(data, cache))
        self.assertEqual(files(), made)
        run = self.finish(self.job(data, train=TRAIN), f"data.cache_dir={cache}")
        self.assertEqual(files(), made)
        self.assertFalse((run.run_dir / "cache").exists())

    def test_tensors_in_one_safetensors_file(self):
        data = self.scratch / "shapes.safetensors"
        tensors = {}
        for split, count in (("train", 200), ("test", EVALUATION)):
            made = list(colour_planes(count, 12, 4, seed=count))
            tensors[f"x_{split}"] = ("U8", [count, 3, 12, 12],
                                     b"".join(b"".join(planes) for _, planes in made))
            tensors[f"y_{split}"] = ("U8", [count], bytes(label for label, _ in made))
        data.write_bytes(safetensors_file(tensors))
        splits = self.inspect(data)
        self.assertEqual([(s["split"], s["format"], s["samples"], s["shape"]) for s in splits],
                         [("train", "safetensors", 200, [3, 12, 12]),
                          ("eval", "safetensors", EVALUATION, [3, 12, 12])])
        self.assert_places(self.train(data, {"name": "cnn"}), "shapes.safetensors")

    def test_tokens_of_eight_bytes_in_safetensors_files(self):
        data = self.scratch / "data"
        data.mkdir()
        for split, count in (("train", 1_000), ("val", 300)):
            ids = struct.pack(f"<{count}q", *(i * 7 % 50 for i in range(count)))
            (data / f"{split}.safetensors").write_bytes(
                safetensors_file({"input_ids": ("I64", [count], ids)}))
        splits = self.inspect(data, "--block", "16")
        self.assertEqual([(s["split"], s["format"], s["classes"]) for s in splits],
                         [("train", "tokens", 50), ("eval", "tokens", 50)])
        text = self.train(data, {"name": "gpt2", "n_layer": 1, "n_head": 2, "n_embd": 32,
                                 "block": 16})
        self.assert_places(text, "train.safetensors")

    def test_pixels_in_arrow_files_of_several_batches(self):
        data = self.scratch / "data"
        data.mkdir()
        for split, count in (("train", 200), ("val", EVALUATION)):
            made = [(label, bytes(x for rgb in zip(*planes) for x in rgb))
                    for label, planes in colour_planes(count, 12, 4, seed=count)]
            arrow_files.pixels(data / f"{split}.arrow", (12, 12, 3), made)
        splits = self.inspect(data)
        self.assertEqual([(s["split"], s["format"], s["samples"], s["shape"]) for s in splits],
                         [("train", "arrow", 200, [3, 12, 12]),
                          ("eval", "arrow", EVALUATION, [3, 12, 12])])
        self.assert_places(self.train(data, {"name": "cnn"}, AUGMENTED), "train.arrow")

    def test_lists_of_tokens_in_arrow_files(self):
        data = self.scratch / "data"
        data.mkdir()
        for split, lists in (("train", 70), ("val", 20)):
            sizes = [16 + i % 7 for i in range(lists)]
            ids = iter(i * 7 % 50 for i in range(sum(sizes)))
            arrow_files.tokens(data / f"{split}.arrow",
                               [[next(ids) for _ in range(size)] for size in sizes])
        splits = self.inspect(data, "--block", "16")
        self.assertEqual([(s["split"], s["format"], s["classes"]) for s in splits],
                         [("train", "arrow_tokens", 50), ("eval", "arrow_tokens", 50)])
        text = self.train(data, {"name": "gpt2", "n_layer": 1, "n_head": 2, "n_embd": 32,
                                 "block": 16})
        self.assert_places(text, "train.arrow")

    def test_tables_of_numbers_with_names_of_classes(self):
        data = self.scratch / "data"
        data.mkdir()
        table(data / "train.csv", 200, quoting=csv.QUOTE_NONNUMERIC)
        table(data / "test.tsv", EVALUATION, dialect="excel-tab")
        splits = self.inspect(data)
        self.assertEqual([(s["split"], s["format"], s["samples"], s["shape"], s["classes"])
                          for s in splits],
                         [("train", "csv", 200, [4, 1, 1], 3),
                          ("eval", "csv", EVALUATION, [4, 1, 1], 3)])
        verified = json.loads(self.succeed("data", "verify", data, "--json"))["splits"][0]
        self.assertEqual((verified["format"], verified["samples"], verified["damaged"]),
                         ("csv", 200, 0))
        self.assert_places(self.train(data, {"name": "mlp"}), f"{data}/train.csv")

    def test_a_table_reaches_the_model_as_python_reads_it(self):
        data = self.scratch / "small.csv"
        table(data, 200, delimiter=";", lineterminator="\n")
        sections = {"data": {"train": {"path": str(data)}, "eval": {"path": str(data)},
                             "transforms": []}}
        self.finish(self.job(data, model={"name": "mlp"}, train=TRAIN, **sections))
        self.succeed("replay", self.scratch / "run", "--step", 2)
        header, content = safetensors(self.scratch / "run" / "replay-step-2.safetensors")

        def tensor(name):
            begin, end = header[name]["data_offsets"]
            return content[begin:end]
        self.assertEqual(header["rows"]["shape"], [40, 4])
        with data.open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file, delimiter=";"))
        samples = struct.unpack("<40q", tensor("samples"))
        features = [name for name in rows[0] if name != "class"]
        self.assertEqual(tensor("rows"), b"".join(as_float32(rows[i][name]) for i in samples
                                                  for name in features))
        classes = sorted(CLASSES)
        self.assertEqual(list(struct.unpack("<40q", tensor("labels"))),
                         [classes.index(rows[i]["class"]) for i in samples])

    def test_a_part_of_one_table_held_out_and_the_table_packed(self):
        data = self.scratch / "small.csv"
        table(data, 300)
        packed = self.scratch / "packed"
        self.succeed("data", "pack", data, packed)
        for path in (data, packed):
            job = self.job(path, model={"name": "mlp"}, train=TRAIN,
                           data={"train": {"path": str(path)}, "holdout": 0.2})
            one = self.finish(job, "--workers", 1, name=path.stem + "-one")
            two = self.finish(job, "--workers", 2, name=path.stem + "-two")
            self.assert_same_result(two, one)
            self.assertLess(one.history()[-1]["loss"], one.history()[0]["loss"])
            self.assertGreater(one.summary()["eval_accuracy"], 0.9)

    def test_a_table_with_a_gap_is_refused_before_anything_starts(self):
        data = self.scratch / "small.csv"
        data.write_text("a,b,label\n1,2,0\n3,,1\n")
        self.assert_fails(self.start(self.job(data, model={"name": "mlp"}, train=TRAIN)), 65,
                          names=[data, "line 3", "column 2", "b"])

    def test_an_indexed_dataset_of_megatron_lm(self):
        data = self.scratch / "data"
        data.mkdir()
        for split, sequences in (("train", 70), ("val", 20)):
            sizes = [16 + i % 7 for i in range(sequences)]
            tokens = [i * 7 % 50 for i in range(sum(sizes))]
            places = [2 * sum(sizes[:i]) for i in range(sequences)]
            (data / f"{split}_text_document.bin").write_bytes(
                struct.pack(f"<{len(tokens)}H", *tokens))
            (data / f"{split}_text_document.idx").write_bytes(
                b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, 8, sequences, sequences + 1)
                + struct.pack(f"<{sequences}i", *sizes) + struct.pack(f"<{sequences}q", *places)
                + struct.pack(f"<{sequences + 1}q", *range(sequences + 1)))
        splits = self.inspect(data, "--block", "16")
        self.assertEqual([(s["split"], s["format"]) for s in splits],
                         [("train", "megatron"), ("eval", "megatron")])
        text = self.train(data, {"name": "gpt2", "n_layer": 1, "n_head": 2, "n_embd": 32,
                                 "block": 16})
        self.assert_places(text, "train_text_document.bin")


if __name__ == "__main__":
    unittest.main()
