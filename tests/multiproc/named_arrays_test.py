"""Arrays by name with real processes: two inputs and two targets of an archive, a death, a resume
in another world and an audit; what is wrong with the arrays or the job."""
import shutil
import struct
import unittest
import zipfile

from harness import ROOT, LockstepTest

PROGRAM = ROOT / "tests/golden/named_arrays/two_inputs.pt2"
SAMPLES, SIDE = 630, 4
TRAIN = {"global_batch": 48, "slots": 4, "epochs": 10, "eval_batch": 50}
STEPS = 14 * TRAIN["epochs"]  # of 630 samples, the last of an epoch short
FORMATS = {"|u1": "B", "<f4": "f", "<f8": "d", "<i4": "i"}


def npy(descr, shape, values):
    text = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}".encode()
    text += b" " * (-(len(text) + 11) % 64) + b"\n"
    return (b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text
            + struct.pack(f"<{len(values)}{FORMATS[descr]}", *values))


class NamedArrays(LockstepTest):
    def arrays(self, samples=SAMPLES):
        plane = SIDE * SIDE
        pixels = [i * 7919 % 251 for i in range(samples * plane)]
        depth = [i * 31 % 64 / 32 - 1 for i in range(samples * plane)]
        return {"pixels": ("|u1", (samples, SIDE, SIDE), pixels),
                "depth": ("<f8", (samples, 1, SIDE, SIDE), depth),
                "mask": ("|u1", (samples, SIDE, SIDE), [int(x > 125) for x in pixels]),
                "price": ("<f4", (samples,), [sum(depth[i * plane:][:4]) for i in range(samples)]),
                "w": ("<f4", (samples,), [i % 3 * 0.5 for i in range(samples)])}

    def data(self, name, **changed):
        folder = self.scratch / name
        folder.mkdir()
        for split, samples in (("train", SAMPLES), ("val", 90)):
            arrays = self.arrays(samples)
            arrays.update({key: array for key, array in changed.items() if split == "train"})
            with zipfile.ZipFile(folder / f"{split}.npz", "w") as archive:
                for key, array in arrays.items():
                    archive.writestr(f"{key}.npy", npy(*array))
        return folder

    def job_of(self, folder, data=(), **train):
        program = self.scratch / PROGRAM.name
        shutil.copy(PROGRAM, program)
        return self.job(str(folder), model={"name": "exported", "path": str(program)},
                        data={"train": {"path": str(folder)}, "inputs": ["pixels", "depth"],
                              "targets": ["mask", "price"], "transforms": ["normalize"],
                              **dict(data)},
                        train={**TRAIN, **train}, optimizer={"name": "adamw", "lr": 0.01},
                        checkpoint={"every_steps": 20, "keep": 2})

    def test_a_death_and_a_resume_in_another_world_give_the_same(self):
        job = self.job_of(self.data("d"), data={"weight": "w"})
        one = self.finish(job, "--workers", 1, name="one")
        history = one.history()
        self.assertEqual(len(history), STEPS)
        self.assertLess(history[-1]["loss"], history[0]["loss"])
        self.assertIn("eval_loss", one.summary(), "val.npz is for evaluation")
        self.goes_on_in_another_world(job, one)

    def test_what_is_wrong_is_refused_by_name(self):
        price = self.arrays()["price"]
        nan = [*price[2][:-1], float("nan")]
        for i, (changed, data, train, code, names, advises) in enumerate((
                ({}, {"weight": "v"}, {}, 65, ["v", "data.weight", "depth, mask"],
                 "Correct the name"),
                ({"price": ("<f4", (SAMPLES,), nan)}, {}, {}, 65,
                 ["train.npz (price)", f"sample {SAMPLES - 1}"], "correct it"),
                ({"price": ("<f4", (2,), [1, 2])}, {}, {}, 65,
                 ["train.npz (pixels)", "630 samples", "train.npz (price)"], "write both"),
                ({}, {"transforms": ["flip"]}, {}, 64, ["data.transforms", "depth"], "leave out"),
                ({}, {"targets": ["mask"]}, {}, 78, ["two_inputs.pt2", "4 inputs", "mask"],
                 "forward takes"))):
            with self.subTest(names=names):
                run = self.start(self.job_of(self.data(f"bad-{i}", **changed), data, **train),
                                 name=f"refused-{i}")
                self.assert_fails(run, code, names=names, advises=advises)

    def test_a_built_in_model_takes_rows_and_a_number(self):
        rows = ("<f4", (SAMPLES, 2), [i * 37 % 64 / 32 - 1 for i in range(2 * SAMPLES)])
        folder = self.data("d", rows=rows)
        (folder / "val.npz").unlink()
        table = {"inputs": ["rows"], "targets": ["price"]}
        mlp = self.job(str(folder), model={"name": "mlp"},
                       data={"train": {"path": str(folder)}, "holdout": 0.1, **table},
                       train={**TRAIN, "loss": "mse"}, optimizer={"name": "sgd", "lr": 0.01})
        one = self.finish(mlp, "--workers", 1, name="one")
        self.assert_same_result(self.finish(mlp, "--workers", 3, name="three"), one)
        bad = self.job(str(folder), model={"name": "mlp"},
                       data={"train": {"path": str(folder)}, **table}, train=TRAIN)
        self.assert_fails(self.start(bad, name="bad"), 64,
                          names=["cross_entropy", "price (float32)"], advises="mse")


if __name__ == "__main__":
    unittest.main()
