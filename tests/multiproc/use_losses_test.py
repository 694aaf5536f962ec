"""`lockstep eval` and `lockstep predict` of models with other losses than cross entropy, with real
processes: losses of train.loss, and models' own losses, whose predictions need
model.predict_path."""
import json
import math
import shutil
import struct
import subprocess
import unittest

from array_files import npy
from harness import BIN, ROOT, lockstep, synthetic_dataset
from trained_runs import TRAIN, TrainedRunsTest

PROGRAMS = ROOT / "tests/golden/own_loss"
SAMPLES, COLUMNS = 63, 4


class Tables(TrainedRunsTest):
    def inputs(self):
        return [[(i * COLUMNS + c) * 7919 % 256 / 128 - 1 for c in range(COLUMNS)]
                for i in range(SAMPLES)]

    def table(self, classes=3):
        path = self.scratch / f"table-{classes}.csv"
        rows = [",".join(map(str, inputs)) + f",{i * 31 % 11 % classes}"
                for i, inputs in enumerate(self.inputs())]
        path.write_text("\n".join(["a,b,c,d,label", *rows]) + "\n")
        return path

    def labels(self, classes=3):
        return [i * 31 % 11 % classes for i in range(SAMPLES)]

    def train_on_table(self, model, classes=3, name="run", **train):
        table = str(self.table(classes))
        return self.train(table, model, name=name,
                          train={"global_batch": 32, "epochs": 5, "eval_batch": 20, **train},
                          data={"train": {"path": table}, "eval": {"path": table},
                                "transforms": ["normalize"]})

    def assert_same_for_any_workers(self, place, counts=(3,)):
        wanted = self.scores(place)
        for workers in counts:  # of four batches
            self.assertEqual(self.scores(place, "--workers", workers), wanted)
        return wanted


class LossesOfTheKey(Tables):
    def test_numbers_have_errors_and_their_predictions_are_values(self):
        run = self.train_on_table({"name": "mlp"}, loss="mse")
        # Workers share batches whatever the loss is.
        scores = self.assert_same_for_any_workers(run.run_dir, counts=(2, 3, 7))
        self.assert_scores_of_run(run, scores)
        for place in (run.run_dir, self.export(run)):
            values = self.assert_values(place, "mse", scores)
            self.assert_every_format(place, values)

    def test_every_loss_has_its_errors_in_a_run_and_in_what_is_exported(self):
        program = {"name": "exported", "path": str(PROGRAMS / "one_output.pt2")}
        for loss, model in (("l1", {"name": "mlp"}), ("huber", {"name": "mlp"}), ("mse", program)):
            with self.subTest(f"{loss} {model['name']}"):
                name = f"{loss}-{model['name']}"
                run = self.train_on_table(model, name=name, loss=loss)
                scores = self.scores(run.run_dir)
                self.assert_scores_of_run(run, scores)
                self.assert_values(run.run_dir, loss, scores)
                exported = self.scores(self.export(run, f"of-{name}"), self.table(), "--train-split")
                self.assertAlmostEqual(exported["loss"], scores["loss"], delta=1e-6)

    def assert_values(self, place, loss, scores):
        rows = self.rows(place, self.table(), "--train-split", "--workers", 2)
        values = [float(row["value"]) for row in rows]
        errors = [value - label for value, label in zip(values, self.labels(), strict=True)]
        self.assertAlmostEqual(scores["rmse"], math.sqrt(sum(e * e for e in errors) / SAMPLES),
                               delta=1e-5)
        self.assertAlmostEqual(scores["mae"], sum(map(abs, errors)) / SAMPLES, delta=1e-5)
        wanted = {"mse": scores["rmse"] ** 2, "l1": scores["mae"]}.get(loss, scores["loss"])
        self.assertAlmostEqual(scores["loss"], wanted, delta=1e-5)
        return values

    def assert_every_format(self, place, values):
        table = self.table()
        self.assertEqual(self.array(place, table, "--train-split"), ("<f4", (SAMPLES,), tuple(
            struct.unpack("<f", struct.pack("<f", value))[0] for value in values)))
        self.succeed("predict", place, table, "--train-split", "--out",
                     self.scratch / f"{place.name}.jsonl")
        lines = (self.scratch / f"{place.name}.jsonl").read_text().splitlines()
        for line, value in zip(lines, values, strict=True):
            self.assertAlmostEqual(json.loads(line)["value"], value, delta=1e-6)
        self.assert_fails(lockstep("predict", place, table, "--train-split", "--top", 1), 64,
                          names="--top", advises="leave it out")
        self.assert_fails(lockstep("eval", place, table, "--train-split", "--confusion",
                                   self.scratch / "c.csv"), 64, names="confusion")

    def test_bce_is_two_classes(self):
        run = self.train_on_table({"name": "mlp"}, classes=2, loss="bce")
        table = self.table(2)
        scores = self.assert_same_for_any_workers(run.run_dir)
        self.assert_scores_of_run(run, scores)
        labels = self.labels(2)
        for place in (run.run_dir, self.export(run)):
            rows = self.rows(place, table, "--train-split")
            self.assertEqual(list(rows[0]), ["sample", "name", "class_1", "probability_1",
                                             "class_2", "probability_2"])
            said = [int(row["class_1"]) for row in rows]
            right = sum(a == b for a, b in zip(said, labels, strict=True))
            self.assertEqual(right / SAMPLES, scores["accuracy"])
            matrix = [[sum(pair == (i, j) for pair in zip(labels, said)) for j in range(2)]
                      for i in range(2)]
            self.assertEqual(scores["confusion"], matrix)
            _, shape, logits = self.array(place, table, "--train-split", "--logits")
            self.assertEqual(shape, (SAMPLES, 1))
            of_class = {row["sample"]: float(row["probability_1"]) for row in rows}
            for i, logit in enumerate(logits):
                self.assertAlmostEqual(max(1 / (1 + math.exp(-logit)), 1 / (1 + math.exp(logit))),
                                       of_class[str(i)], delta=1e-5)
            self.assertEqual(self.array(place, table, "--train-split")[1], (SAMPLES, 2))

    def test_bce_of_several_labels_gives_each_its_own_probability(self):
        data = self.scratch / "labels"
        data.mkdir()
        inputs = self.inputs()
        labels = [[float(a > 0), float(b > 0), float(a > 0 and b > 0)] for a, b, *_ in inputs]
        for name, rows in (("train_x", inputs), ("train_y", labels)):
            numbers = [number for row in rows for number in row]
            (data / f"{name}.npy").write_bytes(npy("<f4", (SAMPLES, len(rows[0])),
                                                   struct.pack(f"<{len(numbers)}f", *numbers)))
        run = self.train(str(data), {"name": "mlp"},
                         train={"global_batch": 21, "epochs": 30, "loss": "bce"},
                         data={"train": {"path": str(data)}, "inputs": ["x"], "targets": ["y"],
                               "transforms": []}, optimizer={"name": "adamw", "lr": 0.03})
        for place in (run.run_dir, self.export(run)):
            rows = self.rows(place, data, "--train-split", "--workers", 3)
            _, shape, logits = self.array(place, data, "--train-split", "--logits")
            self.assertEqual(shape, (SAMPLES, 3))
            _, shape, shares = self.array(place, data, "--train-split")
            self.assertEqual(shape, (SAMPLES, 3))
            right = 0
            for i, row in enumerate(rows):
                of_label = {int(row[f"class_{n}"]): float(row[f"probability_{n}"]) for n in (1, 2, 3)}
                self.assertEqual(sorted(of_label.values(), reverse=True), [*of_label.values()])
                for label in range(3):
                    at = 3 * i + label
                    self.assertAlmostEqual(of_label[label], 1 / (1 + math.exp(-logits[at])), delta=1e-5)
                    self.assertAlmostEqual(of_label[label], shares[at], delta=1e-5)
                    right += (of_label[label] > 0.5) == (labels[i][label] > 0.5)
            self.assertGreater(right, 0.9 * 3 * SAMPLES)
            self.assertGreater(max(sum(shares[3 * i:3 * i + 3]) for i in range(SAMPLES)), 2,
                               "several may hold at once")

    def test_labels_that_are_no_classes_of_the_model_are_refused(self):
        run = self.train_on_table({"name": "mlp"}, classes=2, loss="bce")
        self.assert_fails(lockstep("eval", run.run_dir, self.table(3), "--train-split"), 65,
                          names=[self.table(3), 2])


class LossesOfModels(Tables):
    def model(self, name, predict=None, folder=PROGRAMS):
        model = {"name": "exported", "path": str(folder / f"{name}.pt2")}
        if predict:
            model["predict_path"] = str(folder / f"{predict}.pt2")
        return model

    def test_metrics_and_weights_are_those_of_the_run(self):
        run = self.train_on_table(self.model("weighted"))
        scores = self.assert_same_for_any_workers(run.run_dir)
        self.assert_scores_of_run(run, scores)
        self.assertEqual(set(scores["metrics"]), {"hit", "size"})
        said = self.succeed("eval", run.run_dir)
        self.assertRegex(said, r"hit +0\.\d+\nsize +\d")
        exported = self.scores(self.export(run), self.table(), "--train-split")
        self.assertAlmostEqual(exported["loss"], scores["loss"], delta=1e-6)
        script = {"name": "torchscript", "path": str(PROGRAMS / "weighted.pt")}
        other = self.train_on_table(script, name="script")
        self.assert_scores_of_run(other, self.scores(other.run_dir))
        for place, named in ((run.run_dir, "model.predict_path"),
                             (self.scratch / "out", "model.predict_path"),
                             (other.run_dir, "loss")):
            self.assert_fails(lockstep("predict", place, self.table(), "--train-split"), 64,
                              names=[place, named])

    def test_a_program_for_predictions_has_the_trained_weights(self):
        folder = self.scratch / "programs"
        folder.mkdir()
        for name in ("weighted", "weighted.predict"):
            shutil.copy(PROGRAMS / f"{name}.pt2", folder)
        run = self.train_on_table(self.model("weighted", "weighted.predict", folder))
        table = [self.table(), "--train-split"]
        scores = self.scores(run.run_dir)
        self.assert_scores_of_run(run, scores)
        rows = self.rows(run.run_dir, *table, "--workers", 2)
        hits = sum(int(row["class_1"]) == label for row, label in zip(rows, self.labels(), strict=True))
        self.assertAlmostEqual(hits / SAMPLES, scores["metrics"]["hit"], delta=1e-6)
        _, shape, logits = self.array(run.run_dir, *table, "--logits")
        self.assertEqual(shape, (SAMPLES, 3))
        self.assertAlmostEqual(sum(map(abs, logits)) / len(logits), scores["metrics"]["size"],
                               delta=1e-5)
        with self.subTest("a last batch of one sample, which the program does not take"):
            filled = self.rows(run.run_dir, *table, "--batch", 31)
            for row, other in zip(rows, filled, strict=True):
                self.assertEqual(row["class_1"], other["class_1"])
                self.assertAlmostEqual(float(row["probability_1"]), float(other["probability_1"]),
                                       delta=1e-5)
        exported = self.export(run)
        self.assertTrue((exported / "predict.pt2").exists())
        shutil.rmtree(folder)
        self.assertEqual(self.rows(exported, *table), rows)
        self.assert_fails(lockstep("predict", run.run_dir, *table), 66, names="weighted.pt2")
        self.succeed("eval", exported, *table)
        content = bytearray((exported / "predict.pt2").read_bytes())
        content[-5] ^= 1
        (exported / "predict.pt2").write_bytes(content)
        self.assert_fails(lockstep("predict", exported, *table), 65, names="predict.pt2")

    def test_classes_of_pixels_are_a_map(self):
        data = synthetic_dataset(self.scratch / "data", train=64, evaluation=22, size=8, classes=3)
        model = {**self.model("dense", "dense.predict"), "eval_path": str(PROGRAMS / "dense.eval.pt2")}
        run = self.train(data, model, train={"global_batch": 16, "eval_batch": 4, "epochs": 2})
        scores = self.scores(run.run_dir, "--workers", 2)
        self.assert_scores_of_run(run, scores)
        labels = (data / "t10k-labels-idx1-ubyte").read_bytes()[8:]
        for place in (run.run_dir, self.export(run)):
            # The program takes four images at once, and the last batch has two.
            kind, shape, classes = self.array(place, data, "--workers", 3)
            self.assertEqual((kind, shape), ("|u1", (22, 8, 8)))
            hits = sum(classes[i] == labels[i // 64] for i in range(len(classes)))
            self.assertAlmostEqual(hits / len(classes), scores["metrics"]["hit"], delta=1e-6)
            _, shape, logits = self.array(place, data, "--logits")
            self.assertEqual(shape, (22, 3, 8, 8))
            of_first = [logits[c * 64:(c + 1) * 64] for c in range(3)]
            self.assertEqual(classes[:64], tuple(max(range(3), key=lambda c: of_first[c][i])
                                                 for i in range(64)))
            for words in ([], ["--out", self.scratch / "a.jsonl"], ["--logits"]):
                self.assert_fails(lockstep("predict", place, data, *words), 64,
                                  advises="--out FILE.npy")
            self.assert_fails(lockstep("predict", place, data, "--batch", 5, "--out",
                                       self.scratch / "b.npy"), 78, names="dense.predict.pt2"
                              if place == run.run_dir else "predict.pt2")

    def test_a_program_for_predictions_that_cannot_be_right_is_refused_at_the_start(self):
        broken = self.scratch / "broken.pt2"
        broken.write_text("no archive at all")
        table = str(self.table())
        for i, (predict, code, names) in enumerate((
                (PROGRAMS / "one_output.pt2", 78, ["one_output.pt2", "out.weight"]),
                (PROGRAMS / "per_sample.pt2", 78, ["per_sample.pt2", "takes labels", "model.predict_path"]),
                (PROGRAMS / "auto.pt2", 78, ["auto.pt2", "losses"]),
                (self.scratch / "none.pt2", 66, ["model.predict_path", "none.pt2"]),
                (broken, 65, ["broken.pt2"]))):
            model = {**self.model("weighted"), "predict_path": str(predict)}
            job = self.job(table, model=model, name=f"bad-{i}.yaml", train={**TRAIN, "eval_batch": 20},
                           data={"train": {"path": table}, "eval": {"path": table}})
            run = self.start(job, "--workers", 1, name=f"bad-{i}")
            self.assert_fails(run, code, names=names)
            self.assertFalse(list(run.run_dir.glob("logs/*worker*")), "a worker was started")
        job = self.job(table, model={"name": "mlp", "predict_path": str(broken)})
        self.assert_fails(self.start(job, "--workers", 1, name="mlp"), 64,
                          names="model.predict_path", advises="exported")


class Robust(Tables):
    def test_numbers_that_are_not_finite_name_their_sample(self):
        run = self.train_on_table({"name": "mlp"}, loss="mse")
        exported = self.export(run)
        content = bytearray((exported / "model.safetensors").read_bytes())
        content[-4:] = struct.pack("<f", math.nan)  # of the last tensor
        (exported / "model.safetensors").write_bytes(content)
        facts = json.loads((exported / "lockstep.json").read_text())
        facts["files"]["model.safetensors"] = subprocess.run(
            ["sha256sum", exported / "model.safetensors"], capture_output=True, text=True,
            check=True).stdout.split()[0]
        (exported / "lockstep.json").write_text(json.dumps(facts))
        self.assert_fails(lockstep("predict", exported, self.table(), "--train-split"), 65,
                          names="sample 0")

    def test_progress_is_told_while_it_takes_long(self):
        data = synthetic_dataset(self.scratch / "data", train=64, evaluation=3000)
        run = self.train(data, {"name": "resnet18"}, train={"max_steps": 1})
        for words in (["eval", run.run_dir, data], ["predict", run.run_dir, data]):
            done = subprocess.run(
                ["script", "-qec", " ".join(map(str, [BIN / "lockstep", *words])) + " >/dev/null",
                 "/dev/null"], capture_output=True, text=True, check=True)
            self.assertRegex(done.stdout, r"(evaluating|predicting) \d+ %")


if __name__ == "__main__":
    unittest.main()
