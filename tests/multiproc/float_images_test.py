"""Images of floats, and rows of ids, with real processes: an exported program with two targets, a death, a resume in
another world, replay, audit, eval and export; a built-in model; what is wrong with arrays or job."""
import shutil
import struct
import unittest
import zipfile

from array_files import npy, safetensors
from harness import ROOT
from trained_runs import TrainedRunsTest

PROGRAM = ROOT / "tests/golden/float_images/images.pt2"
SAMPLES, SIZES = 630, (2, 4, 5)
VALUES = 40
TRAIN = {"global_batch": 48, "slots": 4, "epochs": 10, "eval_batch": 50}
STEPS = 14 * TRAIN["epochs"]  # of 630 samples, the last of an epoch short
CODES = {"f2": "e", "f4": "f", "f8": "d", "u1": "B", "i8": "q"}


def array(dtype, shape, values):
    return npy(("|" if dtype == "u1" else "<") + dtype, shape,
               struct.pack(f"<{len(values)}{CODES[dtype]}", *values))


class FloatImages(TrainedRunsTest):
    def values(self, samples=SAMPLES, count=VALUES):
        return [i * 31 % 64 / 32 - 1 for i in range(samples * count)]

    def data(self, name, dtype="f8", **changed):
        folder = self.scratch / name
        folder.mkdir()
        for split, samples in (("train", SAMPLES), ("val", 90)):
            image = self.values(samples)
            arrays = {"image": array(dtype, (samples, *SIZES), image),
                      "label": array("i8", (samples,), [i % 3 for i in range(samples)]),
                      "price": array("f4", (samples,),
                                     [sum(image[i * VALUES:][:4]) for i in range(samples)])}
            arrays.update({key: made for key, made in changed.items() if split == "train"})
            with zipfile.ZipFile(folder / f"{split}.npz", "w") as archive:
                for key, made in arrays.items():
                    archive.writestr(f"{key}.npy", made)
        return folder

    def job_of(self, folder, data=(), model=(), **train):
        program = self.scratch / PROGRAM.name
        shutil.copy(PROGRAM, program)
        return self.job(str(folder), model=dict(model) or {"name": "exported", "path": str(program)},
                        data={"train": {"path": str(folder)}, "inputs": ["image"],
                              "targets": ["label", "price"], "transforms": [], **dict(data)},
                        train={**TRAIN, **train}, optimizer={"name": "adamw", "lr": 0.01},
                        checkpoint={"every_steps": 20, "keep": 2})

    def test_a_death_and_a_resume_in_another_world_give_the_same(self):
        job = self.job_of(self.data("d"))
        one = self.finish(job, "--workers", 1, name="one")
        history = one.history()
        self.assertEqual(len(history), STEPS)
        self.assertLess(history[-1]["loss"], history[0]["loss"])
        rest = self.goes_on_in_another_world(job, one)
        self.assert_the_batch_is_of_the_arrays(rest)
        self.assert_scores_of_run(rest, self.scores(rest.run_dir))
        directory = self.export(rest)
        self.assert_scores_of_run(rest, self.scores(directory, self.scratch / "d"))
        self.assertIn("floats and rows as float32", (directory / "README.md").read_text())

    def assert_the_batch_is_of_the_arrays(self, run):
        path = self.scratch / "batch.safetensors"
        self.succeed("replay", run.run_dir, "--step", 31, "--batch-file", path)
        header, content = safetensors(path)
        images = header["images"]
        self.assertEqual(images["shape"][1:], list(SIZES))
        samples = struct.unpack(f"<{images['shape'][0]}q",
                                content[slice(*header["samples"]["data_offsets"])])
        got = struct.unpack(f"<{len(samples) * VALUES}f", content[slice(*images["data_offsets"])])
        wanted = self.values()
        for k, i in enumerate(samples):
            self.assertEqual(list(got[k * VALUES:(k + 1) * VALUES]),
                             wanted[i * VALUES:(i + 1) * VALUES])

    def test_a_built_in_model_takes_them_and_doctor_runs(self):
        folder = self.data("d", dtype="f2")
        (folder / "val.npz").unlink()
        job = self.job_of(folder, data={"targets": ["label"], "holdout": 0.1},
                          model={"name": "mlp"}, epochs=2)
        one = self.finish(job, "--workers", 1, name="one")
        self.assert_same_result(self.finish(job, "--workers", 3, name="three"), one)
        self.assertIn("samples/s", self.succeed("doctor", job, "--seconds", 3))
        said = self.succeed("data", "inspect", folder, "--targets", "label")
        self.assertIn("images of 2x4x5 (C x H x W) of float16", said)

    def test_rows_of_ids_with_their_mask(self):
        folder = self.scratch / "ids"
        folder.mkdir()
        ids = [i * 7919 % 32 for i in range(7 * SAMPLES)]
        mask = [int(i % 7 < 3 + i // 7 % 5) for i in range(7 * SAMPLES)]
        for name, made in (("input_ids", array("i8", (SAMPLES, 7), ids)),
                           ("attention_mask", array("u1", (SAMPLES, 7), mask)),
                           ("label", array("i8", (SAMPLES,), [x % 3 for x in ids[::7]]))):
            (folder / f"{name}.npy").write_bytes(made)
        data = {"inputs": ["input_ids", "attention_mask"], "targets": ["label"], "holdout": 0.1}
        program = {"name": "exported", "path": str(PROGRAM.parent / "ids.pt2")}
        job = self.job_of(folder, data=data, model=program, epochs=4)
        one = self.finish(job, "--workers", 1, name="one")
        self.assertLess(one.history()[-1]["loss"], one.history()[0]["loss"])
        three = self.finish(job, "--workers", 3, name="three")
        self.assert_same_result(three, one)
        self.audit(three)
        self.assert_scores_of_run(three, self.scores(three.run_dir))
        path = self.scratch / "batch.safetensors"
        self.succeed("replay", three.run_dir, "--step", 5, "--batch-file", path)
        header, content = safetensors(path)
        tokens = struct.iter_unpack("<7q", content[slice(*header["tokens"]["data_offsets"])])
        labels = content[slice(*header["labels"]["data_offsets"])]
        rows = {tuple(ids[7 * i:7 * i + 7]) for i in range(SAMPLES)}
        for row, (label,) in zip(tokens, struct.iter_unpack("<q", labels), strict=True):
            self.assertIn(row, rows)
            self.assertEqual(label, row[0] % 3)
        for model in ("mlp", "gpt2"):
            with self.subTest(model=model):
                refused = self.start(self.job_of(folder, data=data, model={"name": model}), name=model)
                self.assert_fails(refused, 64, names=[model])

    def test_what_is_wrong_is_refused_by_name(self):
        nan = self.values()
        nan[7 * VALUES + 3] = float("nan")
        cut = array("f4", (SAMPLES, 2, 3, 5), self.values(count=30))
        flat = array("f4", (SAMPLES, 1, 1, 1, 2, 20), self.values())
        for i, (changed, data, model, code, names, advises) in enumerate((
                ({"image": array("f8", (SAMPLES, *SIZES), nan)}, {}, {}, 65,
                 ["train.npz (image)", "sample 7", "NaN"], "correct it"),
                ({"image": flat}, {}, {}, 65, ["train.npz (image)", "float32"], "write it again"),
                ({"image": cut}, {}, {}, 65, ["2x3x5", "2x4x5"], "one shape"),
                ({}, {"transforms": ["normalize"]}, {}, 64,
                 ["data.transforms", "normalize", "floats"], "set data.transforms to []"),
                ({}, {"transforms": ["resize=8", "center_crop=8"]}, {}, 64,
                 ["data.transforms", "floats"], "leave out"))):
            with self.subTest(names=names):
                run = self.start(self.job_of(self.data(f"bad-{i}", **changed), data, model),
                                 name=f"refused-{i}")
                self.assert_fails(run, code, names=names, advises=advises)
                if "data.transforms" in names:
                    self.assertNotIn("waiting for workers", run.text())


if __name__ == "__main__":
    unittest.main()
