"""Runs of archives that PyTorch, torchvision and transformers make from seeds, compared with what
these libraries compute themselves (reference_side.py, in an environment of their own)."""
import json
import os
import pathlib
import signal
import struct
import unittest

from harness import LockstepTest, installed, scratch_directory
from preloaded import run_code

PYTHON = installed("models-python")
SIDE = pathlib.Path(__file__).with_name("reference_side.py")
MODULES = ("torch", "torch._dynamo", "torchvision", "transformers")


def as_float32(value):
    return struct.unpack("<f", struct.pack("<f", value))[0]


def side(*words):
    """Runs PyTorch's side and returns the JSON that it prints."""
    words = [str(SIDE), *map(str, words)]
    done = run_code(PYTHON, f"import runpy, sys\nsys.argv = {words}\nsys.path[0] = {str(SIDE.parent)!r}\n"
                            "runpy.run_path(sys.argv[0], run_name='__main__')", modules=MODULES)
    if done.returncode != 0:
        raise AssertionError(f"reference_side.py {words}: {done.stderr[-3000:]}")
    return json.loads(done.stdout)


@unittest.skipUnless(PYTHON, "torchvision and transformers are not installed "
                             "(deploy/install_deps.sh --for tests)")
class ReferenceTest(LockstepTest):
    MODELS = ()  # of reference_models.py
    STEPS = 20
    CHECKPOINT_STEPS = 4

    @classmethod
    def setUpClass(cls):
        cls.archives = scratch_directory(cls.addClassCleanup)
        cls.told = side("make", cls.archives, *cls.MODELS)

    def job_of(self, name, **train):
        """A job for a model's archives and data. Keyword arguments are keys of `train`."""
        archives, told = self.archives / name, self.told[name]
        model = {"name": "exported", "path": str(archives / "train.pt2"), **told["model"]}
        if (archives / "eval.pt2").exists():
            model["eval_path"] = str(archives / "eval.pt2")
        data = {"path": str(archives / "data")}
        words = [name, *(f"{key}-{value}" for key, value in train.items())]
        return self.job(data["path"], f"{'-'.join(words)}.json", job=name, model=model,
                        data={"train": data, "eval": data},
                        train={"global_batch": 8, "slots": 1, "max_steps": self.STEPS,
                               "eval_batch": 8, **train},
                        optimizer={"name": "sgd", "lr": told["lr"], "momentum": 0},
                        checkpoint={"every_steps": self.CHECKPOINT_STEPS, "keep": 2})

    def assert_as_in_eager_pytorch(self, jobs):
        """Trains each job (by model and file) with one worker, and returns the runs. Checks that
        the losses equal PyTorch's, in every bit and with the weights if one slot holds the batch.
        The exported program in torch, and the exported weights in the library's model, must have
        Lockstep's evaluation loss."""
        runs = [self.finish(job, "--workers", 1, name=job.stem) for _, job in jobs]
        words = []
        for (name, job), run in zip(jobs, runs):
            exported = self.scratch / f"{job.stem}-exported"
            self.succeed("export", "model", run.run_dir, exported)
            words += [name, job, exported]
        for (_, job), run, found in zip(jobs, runs, side("check", self.archives, *words)):
            with self.subTest(job=job.stem):
                self.assert_agrees(json.loads(job.read_text())["train"], run, found)
        return runs

    def assert_agrees(self, train, run, found):
        losses = [row["loss"] for row in run.history()]
        self.assertEqual(len(losses), train["max_steps"])
        if train["slots"] == 1:
            self.assertEqual(list(map(as_float32, losses)), list(map(as_float32, found["losses"])))
            self.assertEqual(found["other_bits"], [])
        for ours, theirs in zip(losses, found["losses"]):
            self.assertAlmostEqual(ours, theirs, delta=1e-5 * theirs)
        wanted = run.summary()["eval_loss"]
        self.assertAlmostEqual(found["library_loss"], wanted, delta=1e-5 * wanted)
        # Lockstep evaluates in train.precision. The program that it exports computes in fp32.
        limit = 1e-5 if train.get("precision", "fp32") == "fp32" else 1e-3
        self.assertAlmostEqual(found["opened_loss"], wanted, delta=limit * wanted)
        self.assertLess(found["logits_differ"], 1e-5)

    def assert_the_same_in_any_world(self, job, whole):
        """Checks that the run ends as `whole` does: with 4 workers, and with 2 of which one dies,
        resumed with 3."""
        def ends_so(run):
            self.assert_same_result(run, whole)
            self.assertEqual(run.summary()["eval_loss"], whole.summary()["eval_loss"])

        ends_so(self.finish(job, "--workers", 4, name=f"{job.stem}-of-4"))
        name = f"{job.stem}-killed"
        killed = self.start(job, "--workers", 2, name=name, slot_ms=500)
        killed.wait_for_step(3)
        os.kill(killed.worker(1), signal.SIGKILL)
        killed.wait_for(lambda: killed.status()["generation"] > 1, "another generation")
        killed.wait_for_more_steps(2)
        killed.process.send_signal(signal.SIGINT)
        self.assertEqual(killed.wait(), 75, killed.text()[-3000:])
        self.assertLess(len(killed.history()), len(whole.history()))
        ends_so(self.finish(job, "--resume", "--workers", 3, name=name))
