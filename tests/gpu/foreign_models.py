"""Models that users bring, on a GPU: TorchScript files, and the plug-in of tests/plugin."""
import os
import pathlib
import unittest

from gpu_test import DEVICE, GpuTest
from harness import ROOT, synthetic_dataset

FILES = pathlib.Path(os.environ.get("LOCKSTEP_SUITE_FILES", ROOT / "tests/gpu/files"))


class ForeignModels(GpuTest):
    def images(self):
        path = self.scratch / "images"
        return path if path.exists() else synthetic_dataset(path, classes=10)

    def text(self):
        path = self.scratch / "text.txt"
        path.write_text("every slot of every rank, " * 200)
        return path

    def assert_same_for_any_number_of_workers(self, **sections):
        job = self.job_of(**sections)
        one, three = (self.finish(job, "--workers", n, name=f"w{n}") for n in (1, 3))
        self.assert_same_result(three, one)
        self.assertLess(one.history()[-1]["loss"], one.history()[0]["loss"])

    def assert_computes_as_on_a_cpu(self, **sections):
        """Compares evaluations after a step that hardly changes the weights. Training may have
        dropout, which differs from device to device."""
        there, here = (self.finish(self.job_of(cluster={"device": device}, max_steps=1, **sections),
                                   "optimizer.lr=1e-12", name=name)
                       for name, device in (("there", DEVICE), ("here", "cpu")))
        self.assertAlmostEqual(there.summary()["eval_loss"], here.summary()["eval_loss"],
                               delta=1e-2)

    def test_a_torchscript_file_trains_on_tokens(self):
        sections = {"data": self.text(), "global_batch": 20,
                    "model": {"name": "torchscript", "block": 16,
                              "path": str(FILES / "torchscript_tokens.pt")}}
        self.assert_same_for_any_number_of_workers(**sections)
        self.assert_computes_as_on_a_cpu(**sections)

    def test_a_torchscript_file_trains_on_images(self):
        # Fast: LibTorch has no deterministic backward of its adaptive pooling on a GPU.
        sections = {"data": self.images(), "comm": {"numerics": "fast"},
                    "model": {"name": "torchscript", "path": str(FILES / "torchscript_images.pt")}}
        self.assert_computes_as_on_a_cpu(**sections)
        run = self.finish(self.job_of(**sections), "--workers", 2)
        self.assertLess(run.history()[-1]["loss"], run.history()[0]["loss"])

    def test_a_plug_in_trains(self):
        sections = {"data": self.images(),
                    "model": {"name": "plugin", "path": str(FILES / "libsmall_net.so")}}
        self.assert_same_for_any_number_of_workers(**sections)
        self.assert_computes_as_on_a_cpu(**sections)


if __name__ == "__main__":
    unittest.main()
