"""`lockstep data pack` with real processes: runs train on its output, also after a kill."""
import json
import os
import shutil
import signal
import subprocess
import time
import unittest

import array_files
import shard_files
from harness import BIN, LockstepTest, synthetic_dataset
from image_files import CLASSES, EACH, EVALUATION, images

GPT2 = {"name": "gpt2", "n_layer": 1, "n_head": 2, "n_embd": 32, "block": 16}


def contents(directory):
    return {path.relative_to(directory): path.read_bytes()
            for path in directory.rglob("*") if path.is_file()}


def kill_once(process, has_begun):
    """Sends kill -9 as soon as `has_begun()`. The process may have come any way by then, or
    ended."""
    while process.poll() is None and not has_begun():
        time.sleep(0.001)
    if process.poll() is None:
        os.kill(process.pid, signal.SIGKILL)
    process.wait()


class Pack(LockstepTest):
    def command(self, source, to, *args):
        return [BIN / "lockstep", "data", "pack", source, to, *map(str, args)]

    def pack(self, source, to, *args):
        self.succeed("data", "pack", source, to, *args)
        return to

    def train(self, path, name, **sections):
        job = self.job(path, **{"train": {"global_batch": 40, "slots": 4, "epochs": 2}, **sections})
        one = self.finish(job, "--workers", 1, name=name + "-one")
        two = self.finish(job, "--workers", 2, name=name + "-two")
        self.assert_same_result(two, one)
        self.assertIn("eval_accuracy", one.summary())
        return one

    def test_pixels_train_with_the_same_bits_for_any_number_of_workers(self):
        source = synthetic_dataset(self.scratch / "idx", train=300, evaluation=60)
        packed = self.pack(source, self.scratch / "packed")
        run = self.train(packed, "packed")
        self.assertLess(run.history()[-1]["loss"], run.history()[0]["loss"])

    @unittest.skipUnless(shutil.which("cjpeg"),
                         "cjpeg is not installed (Debian: libjpeg-turbo-progs)")
    def test_compressed_images_train_with_the_same_bits_for_any_number_of_workers(self):
        source = self.scratch / "mds"
        shard_files.mds(source / "train", list(images(EACH, 1)))
        shard_files.mds(source / "val", list(images(EVALUATION, 2)))
        shard_files.compress_mds(source / "train")
        packed = self.pack(source, self.scratch / "packed", "--compression", "zstd")
        seen = json.loads(self.succeed("data", "verify", packed, "--json"))["splits"][0]
        self.assertEqual((seen["format"], seen["samples"]), ("arrow_images", len(CLASSES) * EACH))
        self.train(packed, "packed", data={
            "train": {"path": str(packed)}, "eval": {"path": str(packed)},
            "transforms": ["random_resized_crop=16", "flip", "normalize"]})

    def test_a_run_on_packed_tokens_is_the_run_on_the_tokens(self):
        source = self.scratch / "tokens"
        source.mkdir()
        for name, count in (("train.bin", 1500), ("val.bin", 300)):
            (source / name).write_bytes(b"".join((i * 7 % 50).to_bytes(2, "little")
                                                 for i in range(count)))
        packed = self.pack(source, self.scratch / "packed", "--compression", "lz4")
        of_source = self.train(source, "source", model=GPT2)
        of_packed = self.train(packed, "packed", model=GPT2)
        self.assert_same_result(of_packed, of_source)

    def test_a_kill_in_the_middle_costs_the_files_in_hand_only(self):
        source = self.scratch / "arrays"
        source.mkdir()
        for what, array in zip(("images", "labels"), array_files.channels_last(12_000)):
            (source / f"train_{what}.npy").write_bytes(array)
        whole = self.pack(source, self.scratch / "whole", "--shard-mb", 1, "--threads", 1)
        killed = self.scratch / "killed"
        process = subprocess.Popen(self.command(source, killed, "--shard-mb", 1, "--threads", 2),
                                   stdout=subprocess.DEVNULL)
        # The next call goes on with the files that this one leaves.
        kill_once(process, lambda: list(killed.glob("*.arrow")))
        self.pack(source, killed, "--shard-mb", 1, "--threads", 2)
        self.assertEqual(contents(killed), contents(whole))


if __name__ == "__main__":
    unittest.main()
