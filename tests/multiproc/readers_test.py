"""Readers of files (data.reader, data.read_ahead_mb) in real runs: the same weights with every
reader, however far it reads ahead; a file that is cut off under each reader; its metrics."""
import json
import os
import random
import re
import struct
import unittest
import urllib.request

import image_files
from disturbed import DisturbedTest
from fails_with import events, told
from harness import DEADLINE_S, LockstepTest

READERS = ("mmap", "pread")
IMAGES = "train-images-idx3-ubyte"


def tokens(count, seed):
    rng = random.Random(seed)
    return struct.pack(f"<{count}H", *(rng.randrange(50) for _ in range(count)))


class Readers(LockstepTest):
    def compare(self, job):
        """Compares one worker that reads nothing ahead with each reader in one to three workers."""
        plain = self.finish(job, "--workers", 1, "data.read_ahead_mb=0", name="plain")
        for i, reader in enumerate(("auto", *READERS)):
            run = self.finish(job, "--workers", i % 3 + 1, f"data.reader={reader}",
                              "data.read_ahead_mb=1", name=reader)
            self.assert_same_result(run, plain)
            for worker in range(i % 3 + 1):
                said = [told(line) for line in events(run, "data_reader", f"worker-{worker}")]
                self.assertEqual(len(said), len(set(said)), "said twice")

    def test_tokens_give_the_same_weights_whatever_reads_them(self):
        data = self.scratch / "data"
        data.mkdir()
        (data / "train.bin").write_bytes(tokens(4000, 1))
        (data / "val.bin").write_bytes(tokens(500, 2))
        model = {"name": "gpt2", "n_layer": 1, "n_head": 2, "n_embd": 32, "block": 16}
        self.compare(self.job(data, model=model,
                              train={"global_batch": 40, "slots": 4, "epochs": 2}))

    def test_image_files_give_the_same_weights_whatever_reads_them(self):
        data = self.scratch / "data"
        rng = random.Random(3)
        for label, name in enumerate("abc"):
            (data / name).mkdir(parents=True)
            for i in range(40):
                colours = image_files.pixels(label, 20, 20, rng)
                (data / name / f"{i}.png").write_bytes(image_files.png(20, 20, colours))
        job = self.job(data, model={"name": "cnn"},
                       train={"global_batch": 24, "slots": 4, "epochs": 4})
        self.compare(job)


class ReadersOfAChangingFile(DisturbedTest):
    def series(self, run):
        """A worker's metrics: value by name and labels."""
        address = json.loads((run.run_dir / "coordinator.json").read_text())["http"]
        with urllib.request.urlopen(f"http://{address}/sd", timeout=DEADLINE_S) as answer:
            targets = [target for group in json.load(answer) for target in group["targets"]]
        for target in targets:
            with urllib.request.urlopen(f"http://{target}/metrics", timeout=DEADLINE_S) as answer:
                text = answer.read().decode()
            if "lockstep_data_reads_total" in text:
                return dict(line.rsplit(" ", 1) for line in text.splitlines() if line[0] != "#")
        return {}

    def assert_shown(self, run, reader):
        shown = self.series(run)
        in_use = [re.search(r'reader="(\w+)"', name)[1] for name in shown
                  if name.startswith("lockstep_data_reader_info")]
        reads = [float(value) for name, value in shown.items()
                 if name.startswith("lockstep_data_reads_total")]
        if reader == "mmap":
            self.assertEqual((in_use, reads), (["mapped"], [0.0]))
        else:
            self.assertEqual(in_use, [reader])
            self.assertGreater(reads[0], 0)

    def check(self, reader):
        job = self.job_of()
        run = self.start(job, "--workers", 2, f"data.reader={reader}", name=reader)
        run.wait_for_step(50)
        self.assert_shown(run, reader)
        path = self.data / IMAGES
        before = path.read_bytes()
        os.truncate(path, 5000)
        self.assert_fails(run, 65, names=path, says="changed")
        self.assert_nothing_left(run)
        path.write_bytes(before)
        rest = self.finish(job, "--resume", "--workers", 2, name=reader)
        self.assert_same_result(rest, self.undisturbed)

    def test_one_that_is_cut_off_ends_a_run_that_maps_it(self):
        self.check("mmap")

    def test_one_that_is_cut_off_ends_a_run_that_reads_it_by_pread(self):
        self.check("pread")


if __name__ == "__main__":
    unittest.main()
