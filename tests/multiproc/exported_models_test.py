"""Exported programs (torch.export) with real processes: the same weights for any number of workers,
through a death, and through a resume in another world; replay; jobs that cannot work."""
import os
import shutil
import signal
import unittest

from fails_with import all_of, lacking
from harness import ROOT, LockstepTest, synthetic_dataset

PROGRAMS = ROOT / "tests/golden/exported"  # images of 8x8 in 10 classes
TRAIN = {"global_batch": 48, "slots": 4, "epochs": 12, "eval_batch": 50}
STEPS = 13 * TRAIN["epochs"]  # of 600 samples, the last of an epoch short


class Exported(LockstepTest):
    def data(self, **shape):
        path = self.scratch / ("data" + "".join(f"-{k}{v}" for k, v in shape.items()))
        if path.exists():
            return path
        return synthetic_dataset(path, **{"size": 8, "classes": 10, **shape})

    def job_of(self, program, data=None, model=None, **train):
        path = self.scratch / f"{program}.pt2"
        shutil.copy(PROGRAMS / path.name, path)
        return self.job(data or self.data(),
                        model={"name": "exported", "path": str(path), **(model or {})},
                        train={**TRAIN, **train}, optimizer={"name": "adamw", "lr": 0.001},
                        checkpoint={"every_steps": 20, "keep": 2})

    def test_any_number_of_workers_a_death_and_a_resume_give_the_same_weights(self):
        job = self.job_of("convnet")  # dropout and batch norm
        one = self.finish(job, "--workers", 1, name="one")
        self.assertEqual(len(one.history()), STEPS)
        self.assertLess(one.history()[-1]["loss"], one.history()[0]["loss"])
        for workers in (2, 3, 4):
            run = self.finish(job, "--workers", workers, name=f"with-{workers}")
            self.assert_same_result(run, one)
            self.assertEqual(run.summary()["eval_loss"], one.summary()["eval_loss"])

        killed = self.start(job, "--workers", 2, name="killed", slot_ms=40)
        killed.wait_for_step(20)
        os.kill(killed.worker(1), signal.SIGKILL)
        killed.wait_for_step(60)
        killed.process.send_signal(signal.SIGINT)
        self.assertEqual(killed.wait(), 75, killed.text()[-3000:])
        rest = self.finish(job, "--resume", "--workers", 3, name="killed")
        self.assert_same_result(rest, one)
        self.assertEqual(rest.summary()["eval_loss"], one.summary()["eval_loss"])

        text = self.succeed("replay", one.run_dir, "--step", 41)
        self.assertEqual(lacking(text, names=["stem", "block.conv1", "block.bn2", "fc"]), [], text)

    def test_a_program_of_its_own_evaluates(self):
        lacks = self.start(self.job_of("stochastic_depth"), "--workers", 2, name="lacks")
        self.assert_fails(lacks, 78, names=["stochastic_depth.pt2", "bernoulli_"],
                          advises="model.eval_path")
        job = self.job_of("stochastic_depth",
                          model={"eval_path": str(PROGRAMS / "stochastic_depth.eval.pt2")})
        one = self.finish(job, "--workers", 1, name="one")
        self.assert_same_result(self.finish(job, "--workers", 3, name="three"), one)

    def test_what_does_not_fit_the_data_or_the_batch_ends_before_the_first_step(self):
        for program, data, train, words in (
                ("mlp", {"size": 12}, {}, "(batch, 1, 12, 12)"),
                ("mlp", {"classes": 4}, {}, "(2, 4)"),
                ("tied_lm", {}, {}, "int64"),
                ("from_two", {}, {"global_batch": 4}, "train.global_batch 4"),
                ("refused_writes_weight", {}, {}, "embed.weight")):
            job = self.job_of(program, data=self.data(**data), **train)
            run = self.start(job, "--workers", 2, name=f"bad-{program}-{len(words)}")
            self.assert_fails(run, 78, names=f"{program}.pt2", says=words)

    def test_what_cannot_be_trained_is_refused_before_any_worker_starts(self):
        for program, names, advises in (
                ("big_endian", "big", "little-endian"),
                ("branches", "torch.ops.higher_order.cond", "write the line"),
                ("decomposed", "run_decompositions()", "torch.export.export()"),
                ("double_weight", ["fc.weight", "float64"], "model.float()"),
                ("foreign_operator", ["torch.ops.mylib.twice.default", "refused.py, line 25"],
                 "operators of PyTorch"),
                ("from_file", "torch.ops.aten.from_file.default", "other operators"),
                ("guard", "L['x'].size()[0] % 2 == 0", "write the model"),
                ("pickled", ["fc.bias", "pickle"], "plain tensor"),
                ("schema", "9.0", "torch 2.11"),
                ("weight_views", ["part", "whole"], "clone()")):
            with self.subTest(program=program):
                run = self.start(self.job_of(f"refused_{program}"), "--workers", 2, name=program)
                self.assert_fails(run, 78, names=[f"refused_{program}.pt2", *all_of(names)],
                                  advises=advises)
                self.assertFalse(list(run.run_dir.glob("logs/worker*")))

    def test_a_slot_of_one_sample_at_the_end_of_an_epoch_counts(self):
        data = self.data(train=49)  # the last batch is one sample, in one slot of four
        run = self.start(self.job_of("from_two", data=data), "--workers", 2)
        self.assert_fails(run, 78, names=["from_two.pt2", "slot 3", 49], advises="min=1")
        job = self.job_of("from_two", data=self.data(train=56))  # two samples in each of its slots
        self.finish(job, "--workers", 2, "train.max_steps=3", name="fits")

    def test_damaged_archives_end_with_the_file_and_the_member(self):
        job = self.job_of("mlp")
        path = self.scratch / "mlp.pt2"
        whole = path.read_bytes()
        weight = whole.index(b"data/weights/weight_0")
        flipped = bytearray(whole)
        flipped[weight + 200] ^= 1
        for name, content in (("flipped", bytes(flipped)), ("cut", whole[:len(whole) // 2]),
                              ("empty", b""), ("no zip", b"weights" * 1000)):
            with self.subTest(archive=name):
                path.write_bytes(content)
                run = self.start(job, "--workers", 2, name=name)
                self.assert_fails(run, 65, names=["mlp.pt2",
                                                  *(["weight_0"] if name == "flipped" else [])])

    def test_strided_weights_train_the_same_in_every_world(self):
        job = self.job_of("strided", epochs=1)
        one = self.finish(job, "--workers", 1, name="one")
        self.assert_same_result(self.finish(job, "--workers", 3, name="three"), one)


if __name__ == "__main__":
    unittest.main()
