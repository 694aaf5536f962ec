"""`lockstep replay`: a step of a disturbed run on several workers, again, on one, bit for bit."""
import contextlib
import os
import re
import signal
import sqlite3
import unittest

from array_files import safetensors
from harness import LockstepTest, replay, write_idx

HEADER = 16  # of an IDX file of three dimensions
SIDE = 12


class Replay(LockstepTest):
    def test_a_step_of_a_run_with_a_death_gives_the_same_bits_on_one_process(self):
        newest = 240  # of the checkpoints but the last one, after an epoch of 10
        last = newest + 30
        job = self.job(self.small_data(), model={"name": "cnn", "batch_norm": True, "dropout": 0.2},
                       train={"global_batch": 64, "slots": 4, "max_steps": last},
                       checkpoint={"every_steps": 40, "keep": 3})
        run = self.start(job, "--workers", 3, slot_ms=10)
        run.wait_for_step(50)
        os.kill(run.wait_for(lambda: run.workers()[1], "a second worker"), signal.SIGKILL)
        self.assertEqual(run.wait(), 0, run.text()[-3000:])
        self.assertGreater(run.summary()["generations"], 1)
        base_name = f"step-{newest:010}"
        for step, base in ((last, base_name), (newest + 1, base_name),
                           (30, "the initial weights")):
            answer = replay(run.run_dir, "--step", step)
            self.assertEqual(answer.returncode, 0, answer.stdout + answer.stderr)
            self.assertIn(f"step {step} (epoch {(step - 1) // 10 + 1}), computed from {base}",
                          answer.stdout)
            self.assertIn("the recorded losses again, bit for bit", answer.stdout)
        self.assertIn(f"the weights are those of step-{last:010}",
                      replay(run.run_dir, "--step", last).stdout)

        header, _ = safetensors(run.run_dir / "replay-step-30.safetensors")
        self.assertEqual(header["images"]["shape"], [24, 1, SIDE, SIDE])  # the epoch's last step
        file = self.scratch / "one.safetensors"
        replay(run.run_dir, "--step", 71, "--slot", 2, "--batch-file", file)
        self.assertEqual(safetensors(file)[0]["logits"]["shape"], [16, 4])

        # Other bits are said to be other bits.
        self.damage_history_of(run, step=newest + 10)
        answer = replay(run.run_dir, "--step", newest + 20)
        self.assertEqual(answer.returncode, 1)
        self.assertIn(f"DIFFERS: the loss of step {newest + 10}", answer.stdout)

    def damage_history_of(self, run, step):
        with contextlib.closing(sqlite3.connect(run.run_dir / "journal.db")) as journal:
            journal.execute("UPDATE steps SET loss = loss + 1e-9 WHERE step = ?", (step - 1,))
            journal.commit()

    def test_one_absurd_sample_is_traced_to_its_file_and_place(self):
        data = self.small_data()
        images = bytearray((data / "train-images-idx3-ubyte").read_bytes())
        label = (data / "train-labels-idx1-ubyte").read_bytes()[8 + 333]
        # All light in the quadrant of another class.
        for y in range(SIDE):
            for x in range(SIDE):
                bright = (y >= SIDE // 2) * 2 + (x >= SIDE // 2) == (label + 1) % 4
                images[HEADER + 333 * SIDE * SIDE + y * SIDE + x] = 255 if bright else 0
        write_idx(data / "train-images-idx3-ubyte", 0x803, (600, SIDE, SIDE),
                  bytes(images[HEADER:]))
        run = self.finish(self.job(data, train={"global_batch": 64, "slots": 4, "epochs": 8}),
                          "--workers", 2)
        last_epoch = run.history()[-10:]
        worst = max(last_epoch, key=lambda row: row["loss"])["step"]
        answer = replay(run.run_dir, "--step", worst)
        self.assertEqual(answer.returncode, 0, answer.stdout + answer.stderr)
        first = re.search(r"^  loss .*$", answer.stdout, re.M).group()
        self.assertIn(f"sample 333 label {label}", first)
        self.assertIn(f"{data}/train-images-idx3-ubyte at byte {HEADER + 333 * SIDE * SIDE}", first)

    def test_what_cannot_be_replayed_is_one_line(self):
        run = self.finish(self.job(self.small_data()), "--workers", 1)
        for args, words in ((("--step", 11), "10 steps"), (("--step", 0), "counted from 1"),
                            (("--step", 3, "--slot", 4), "no slot 4")):
            answer = replay(run.run_dir, *args)
            self.assertEqual(answer.returncode, 64, answer.stdout)
            self.assertEqual(len(answer.stderr.splitlines()), 1, answer.stderr)
            self.assertIn(words, answer.stderr)


if __name__ == "__main__":
    unittest.main()
