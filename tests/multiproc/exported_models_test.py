"""Exported programs (torch.export) with real processes: the same weights for any number of workers,
through a death, and through a resume in another world; replay; jobs that cannot work."""
import os
import shutil
import signal
import unittest

from fails_with import lacking
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

        killed = self.start(job, "--workers", 2, name="killed", slot_ms=10)
        killed.wait_for_step(20)
        os.kill(killed.wait_for(lambda: killed.workers()[1], "a second worker"), signal.SIGKILL)
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


if __name__ == "__main__":
    unittest.main()
