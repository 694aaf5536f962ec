"""`lockstep eval` and `lockstep predict` with real processes: the figures of the run's own evaluation,
for every kind of model, of a run and of what was exported; parts on several processes; what they
refuse."""
import csv
import io
import json
import pathlib
import re
import shutil
import struct
import subprocess
import unittest

from array_files import table
from harness import BIN, ROOT, installed, lockstep, synthetic_dataset
from image_files import images, write_images
from preloaded import run_code
from trained_runs import TrainedRunsTest


LIBRARIES, MODULES = installed("models-python"), installed("frameworks-root")
# The logits of DATA by the net that README.md makes, from an input that lockstep.json describes.
BY_HAND = """
import json, pathlib, sys
sys.path.append(MODULES)
facts = json.load(open("lockstep.json"))
given, normalize = facts["input"], facts["normalize"]
def tensor_of(path):
    import torchvision.transforms as T
    from PIL import Image
    steps = []
    for step in given["evaluation"]:
        (word, value), = step.items() if isinstance(step, dict) else ((step, None),)
        steps.append({"resize": T.Resize, "center_crop": T.CenterCrop,
                      "divide_bytes_by": lambda _: T.ToTensor(),
                      "normalize": lambda _: T.Normalize(normalize["mean"], normalize["std"])}[word](value))
    return T.Compose(steps)(Image.open(path).convert("RGB"))
if given["kind"] == "images":
    x = torch.stack([tensor_of(path) for path in sorted(pathlib.Path(DATA).iterdir())])
else:
    import pandas
    rows = pandas.read_csv(DATA)[given["columns"]]
    x = torch.tensor(rows.to_numpy(), dtype=getattr(torch, given["dtype"]))
    x = (x - torch.tensor(normalize["mean"])) / torch.tensor(normalize["std"])
assert str(x.dtype) == "torch." + given["dtype"]
with torch.no_grad():
    print("\\n" + json.dumps(net(x).tolist()))
"""


def is_not_tall(png):
    width, height = struct.unpack(">II", png[16:24])
    return height <= 2 * width


@unittest.skipUnless(LIBRARIES and MODULES,
                     "torchvision or pandas is not installed (deploy/install_deps.sh --for tests)")
class InputsByHand(TrainedRunsTest):
    def assert_same_logits(self, run, data, *words):
        _, shape, wanted = self.array(run.run_dir, data, "--logits", *words)
        exported = self.export(run)
        lines = re.search(r"```python\n(.*?)```", (exported / "README.md").read_text(), re.S).group(1)
        done = run_code(LIBRARIES, f"DATA, MODULES = {str(data)!r}, {MODULES!r}\n{lines}{BY_HAND}", exported,
                        ("torch", "torchvision.transforms"))
        self.assertEqual(done.returncode, 0, done.stderr)
        found = json.loads(done.stdout.splitlines()[-1])
        self.assertEqual((len(found), len(found[0])), shape)
        for mine, theirs in zip((value for row in found for value in row), wanted):
            self.assertAlmostEqual(mine, theirs, delta=1e-4 * max(map(abs, wanted)))

    def test_pictures_of_many_sizes(self):
        directory, flat = self.scratch / "photos", self.scratch / "flat"
        flat.mkdir()
        for name, _, content in images(24, seed=1):
            path = directory / "train" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
            # MODELS.md names the exceptions: JPEGs, and tall pictures with Pillow 13.
            if name.endswith(".png") and is_not_tall(content):
                (flat / name.replace("/", "-")).write_bytes(content)
        self.assertGreater(len(list(flat.iterdir())), 10)
        run = self.train(directory / "train", {"name": "cnn", "batch_norm": True},
                         train={"global_batch": 8, "slots": 2, "epochs": 2},
                         data={"train": {"path": str(directory / "train")},
                               "transforms": ["random_resized_crop=16", "flip", "normalize"]})
        self.assert_same_logits(run, flat)

    def test_rows_of_a_table(self):
        path = self.scratch / "train.csv"
        table(path, 200)
        for model in ({"name": "mlp"}, {"name": "mlp", "batch_norm": True}):
            with self.subTest(model):
                name = f"run-{len(model)}"
                run = self.train(path, model, name=name, data={"train": {"path": str(path)}})
                shutil.rmtree(self.scratch / "out", ignore_errors=True)
                self.assert_same_logits(run, path, "--train-split")


class Eval(TrainedRunsTest):
    def test_every_kind_of_model_gives_the_figures_of_its_run(self):
        golden = ROOT / "tests/golden"
        for name, model, size in (
                ("mlp", {"name": "mlp", "batch_norm": True, "dropout": 0.1}, 12),
                ("cnn", {"name": "cnn"}, 12),
                ("resnet18", {"name": "resnet18"}, 12),
                ("exported", {"name": "exported", "path": str(golden / "exported/convnet.pt2")}, 8),
                ("torchscript",
                 {"name": "torchscript", "path": str(golden / "torchscript_images.pt")}, 12)):
            with self.subTest(name):
                data = synthetic_dataset(self.scratch / f"data-{name}", train=128, size=size,
                                         classes=10)
                run = self.train(data, model, name=name)
                wanted = self.scores(run.run_dir, data)
                self.assert_scores_of_run(run, wanted)
                if name == "mlp":  # batches are shared among workers whatever the model is
                    for words in ([], ["--workers", 2], ["--workers", 5]):
                        self.assertEqual(self.scores(run.run_dir, *words), wanted)
                target = self.export(run, f"of-{name}")
                shutil.move(run.run_dir, self.scratch / f"gone-{name}")
                found = self.scores(target, data)
                if name == "resnet18":
                    self.assertEqual(self.scores(self.scratch / f"gone-{name}", data, "--workers", 2),
                                     wanted)
                self.assertAlmostEqual(found["loss"], wanted["loss"], delta=1e-7)
                self.assertEqual(found["confusion"], wanted["confusion"])

    def test_tokens_have_a_perplexity(self):
        directory = self.scratch / "text"
        directory.mkdir()
        for name, times in (("train.txt", 200), ("val.txt", 20)):
            (directory / name).write_text("every slot of every rank, " * times)
        model = {"name": "gpt2", "n_layer": 1, "n_head": 2, "n_embd": 16, "block": 16}
        run = self.train(directory, model, train={"eval_batch": 4})
        scores = self.scores(run.run_dir, directory)
        self.assert_scores_of_run(run, scores)
        self.assertIn("perplexity", scores)
        self.assertEqual(self.scores(run.run_dir, directory, "--workers", 3), scores)
        exported = self.scores(self.export(run), directory)
        self.assertEqual(exported["loss"], scores["loss"])
        self.assert_fails(lockstep("predict", run.run_dir, directory), 64, names=directory,
                          advises="generate")

    def test_the_matrix_by_class_as_text_table_and_picture(self):
        run = self.train(self.small_data(), {"name": "mlp"}, train={"epochs": 3})
        picture, matrix = self.scratch / "c.svg", self.scratch / "c.csv"
        said = self.succeed("eval", run.run_dir, "--confusion", picture)
        self.assertIn("recall", said)
        self.assertTrue(picture.read_text().startswith("<svg "))
        scores = self.scores(run.run_dir, "--confusion", matrix)
        rows = list(csv.reader(io.StringIO(matrix.read_text())))[1:]
        self.assertEqual([[int(cell) for cell in row[1:]] for row in rows], scores["confusion"])
        right = sum(scores["confusion"][i][i] for i in range(4))
        self.assertEqual(right / scores["samples"], scores["accuracy"])
        for path in (matrix, self.scratch / "c.png"):
            self.assert_fails(lockstep("eval", run.run_dir, "--confusion", path), 64, names=path)

    def test_labels_go_by_the_names_of_classes(self):
        directory = self.scratch / "photos"
        write_images(directory / "train", 12, seed=1)
        run = self.train(directory / "train", {"name": "resnet18"},
                         train={"global_batch": 8, "slots": 2},
                         data={"train": {"path": str(directory / "train")},
                               "transforms": ["resize=16", "center_crop=16", "normalize"]})
        classes = sorted(path.name for path in (directory / "train").iterdir())
        some = self.scratch / "some"
        shutil.copytree(directory / "train" / classes[-1], some / classes[-1])
        shutil.copytree(directory / "train" / classes[1], some / classes[1])
        picture = next((some / classes[1]).iterdir())
        loose = self.scratch / "new photos"
        loose.mkdir()
        shutil.copy(picture, loose / picture.name)
        (row,) = self.rows(run.run_dir, loose, "--top", 1)
        self.assertTrue(row["name"].startswith(f"{loose}/{picture.name}"), row)
        shutil.copy(picture, some / picture.name)
        self.assert_fails(lockstep("eval", run.run_dir, some), 64, names=some,
                          advises="--format image_folder")
        scores = self.scores(run.run_dir, some, "--format", "image_folder")
        counts = {row["class"]: row["samples"] for row in scores["classes"]}
        self.assertEqual({name for name, count in counts.items() if count > 0},
                         {classes[1], classes[-1]})
        (some / classes[1]).rename(some / "unheard-of")
        self.assert_fails(lockstep("eval", run.run_dir, some, "--format", "image_folder"), 65,
                          names="unheard-of")

        flat = self.scratch / "flat"
        flat.mkdir()
        for path in sorted((directory / "train").glob("*/*"))[:5]:
            shutil.copy(path, flat / f"{path.parent.name}-{path.name}")
        rows = self.rows(run.run_dir, flat, "--top", 2)
        self.assertEqual([pathlib.Path(row["name"].split(" in ")[0]).name for row in rows],
                         sorted(path.name for path in flat.iterdir()))
        self.assertTrue(all(row["class_1"] in classes for row in rows))
        self.assertTrue(rows[0]["name"].startswith(str(flat)), rows[0])
        unlabelled = self.rows(run.run_dir, directory / "train", "--unlabelled", "--top", 2)
        self.assertEqual(len(unlabelled), len(list((directory / "train").glob("*/*"))))
        self.assert_fails(lockstep("eval", run.run_dir, flat), 64, advises="predict")


class Predict(TrainedRunsTest):
    def test_any_number_of_processes_writes_the_same_rows(self):
        data = synthetic_dataset(self.scratch / "data", train=128, evaluation=230)
        run = self.train(data, {"name": "mlp"}, train={"epochs": 4})
        for kind in ("csv", "jsonl", "npy"):
            written = []
            for workers in (1, 3):
                out = self.scratch / f"of-{workers}.{kind}"
                self.succeed("predict", run.run_dir, data, "--out", out, "--workers", workers)
                written.append(out.read_bytes())
            self.assertEqual(written[0], written[1], kind)
        scores = self.scores(run.run_dir, data)
        labels = (data / "t10k-labels-idx1-ubyte").read_bytes()[8:]
        rows = self.rows(run.run_dir, data)
        self.assertEqual([int(row["sample"]) for row in rows], list(range(230)))
        right = sum(int(row["class_1"]) == label for row, label in zip(rows, labels))
        self.assertEqual(right / 230, scores["accuracy"])
        self.assertIn("probability_4", rows[0])  # four classes: no fifth
        content = (self.scratch / "of-1.npy").read_bytes()
        values = struct.unpack(f"<{230 * 4}f", content[-230 * 16:])
        for row, at in zip(rows, range(0, len(values), 4)):
            self.assertAlmostEqual(max(values[at:at + 4]), float(row["probability_1"]), delta=1e-5)
            self.assertAlmostEqual(sum(values[at:at + 4]), 1, delta=1e-5)
        exported = self.export(run)
        self.assertEqual(self.rows(exported, data), rows)

    def test_tables_go_by_their_columns(self):
        data = self.scratch / "data"
        data.mkdir()
        table(data / "train.csv", 200)
        table(data / "test.csv", 30)
        run = self.train(data, {"name": "mlp"})
        self.assert_scores_of_run(run, self.scores(run.run_dir, data))
        rows = self.rows(run.run_dir, data, "--top", 1)
        self.assertEqual(len(rows), 30)
        self.assertIn("line", rows[0]["name"])

    def test_a_process_that_dies_is_started_again_and_one_that_dies_twice_is_named(self):
        data = synthetic_dataset(self.scratch / "data", train=64, evaluation=600)
        run = self.train(data, {"name": "resnet18"}, train={"max_steps": 1})
        wanted, target = self.scratch / "wanted.csv", self.scratch / "out.csv"
        self.succeed("predict", run.run_dir, data, "--out", wanted)

        predict = ["predict", run.run_dir, data, "--out", target]
        code, _, said = self.killing_parts(run, 1, *predict)
        self.assertEqual(code, 0, said)
        self.assertEqual(target.read_text(), wanted.read_text())
        target.unlink()
        code, _, said = self.killing_parts(run, 1000, *predict)
        self.assertEqual(code, 70, said)
        self.assertRegex(said, r"part \d of 2\b.*signal 9")
        self.assertFalse(target.exists())

        evaluate = ["eval", run.run_dir, data, "--json"]
        code, printed, said = self.killing_parts(run, 1, *evaluate)
        self.assertEqual(code, 0, said)
        self.assertEqual(json.loads(printed), self.scores(run.run_dir, data))
        code, printed, said = self.killing_parts(run, 1000, *evaluate)
        self.assertEqual((code, printed), (70, ""), said)
        self.assertRegex(said, r"part \d of 2\b.*signal 9")

    def test_what_cannot_be_is_one_line(self):
        data = synthetic_dataset(self.scratch / "data", train=64, evaluation=20)
        run = self.train(data, {"name": "mlp"})
        other = synthetic_dataset(self.scratch / "other", train=64, evaluation=20, size=16)
        text = self.scratch / "some.txt"
        text.write_text("no images at all " * 50)
        there = self.scratch / "there.csv"
        there.write_text("mine")
        place = run.run_dir
        for words, code, subjects in (
                (["predict", place, other], 65, [other, "1x16x16"]),
                (["predict", place, text], 64, [text]),
                (["predict", place, self.scratch / "none"], 66, [self.scratch / "none"]),
                (["predict", place, data, "--top", 5], 64, ["--top", 5, 4]),
                (["predict", place, data, "--top", 5, "--workers", 2], 64, ["--top"]),
                (["predict", place, data, "--out", there], 64, [there]),
                (["predict", place, data, "--out", self.scratch / "a.txt"], 64, [".npy"]),
                (["predict", place, data, "--out", self.scratch / "no/a.csv"], 66, ["no"]),
                (["eval", place, other], 65, [other, "1x16x16"]),
                (["eval", self.export(run), "--json"], 64, ["data"])):
            with self.subTest(words):
                self.assert_fails(lockstep(*words), code, names=subjects)
        self.assertEqual(there.read_text(), "mine")
        self.assertEqual(list(self.scratch.glob("*.tmp.*")), [])
        with open("/dev/full", "w") as full:
            done = subprocess.run([BIN / "lockstep", "predict", place, data], stdout=full,
                                  stderr=subprocess.PIPE, text=True)
        self.assertEqual(done.returncode, 70, done.stderr)
        self.assert_directory_is_checked(self.scratch / "out", data)
        newest = max((place / "checkpoints").glob("step-*")) / "model.safetensors"
        content = bytearray(newest.read_bytes())
        content[-5] ^= 1
        newest.write_bytes(content)
        self.assert_fails(lockstep("predict", place, data), 65, names=newest)

    def assert_directory_is_checked(self, exported, data):
        facts = exported / "lockstep.json"
        good = facts.read_text()
        unlisted = json.loads(good)
        del unlisted["files"]["model.safetensors"]
        for text, subject in ((json.dumps(unlisted), "model.safetensors"),
                              ('{"model":' + "[" * 200_000 + "]" * 200_000 + "}", facts)):
            facts.write_text(text)
            self.assert_fails(lockstep("predict", exported, data), 65, names=[facts, subject],
                              advises="export the model again")
        facts.write_text(good)


if __name__ == "__main__":
    unittest.main()
