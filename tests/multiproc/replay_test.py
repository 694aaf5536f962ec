"""`lockstep replay` computes a step of a disturbed run of several workers again, on one, bit for
bit."""
import contextlib
import os
import re
import signal
import sqlite3
import unittest

from array_files import safetensors
from fails_with import lacking
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
        os.kill(run.worker(1), signal.SIGKILL)
        self.assertEqual(run.wait(), 0, run.text()[-3000:])
        self.assertGreater(run.summary()["generations"], 1)
        base = f"step-{newest:010}"
        for step in (last, newest + 1):
            first_line, rest = self.succeed("replay", run.run_dir, "--step", step).split("\n", 1)
            subjects = [f"step {step}", f"epoch {(step - 1) // 10 + 1}"]
            self.assertEqual(lacking(first_line, names=subjects, says=base), [], first_line)
            self.assertEqual(f"step-{last:010}" in rest, step == last, "whose weights they are")
        self.assertNotIn(base, self.succeed("replay", run.run_dir, "--step", 30))

        header, _ = safetensors(run.run_dir / "replay-step-30.safetensors")
        self.assertEqual(header["images"]["shape"], [24, 1, SIDE, SIDE])  # the epoch's last step
        file = self.scratch / "one.safetensors"
        replay(run.run_dir, "--step", 71, "--slot", 2, "--batch-file", file)
        self.assertEqual(safetensors(file)[0]["logits"]["shape"], [16, 4])

        # replay compares nothing with an edited history.
        self.damage_history_of(run, step=newest + 10)
        self.assert_fails(replay(run.run_dir, "--step", newest + 20), 65,
                          names=run.run_dir / "journal.db")

    def damage_history_of(self, run, step):
        with contextlib.closing(sqlite3.connect(run.run_dir / "journal.db")) as journal:
            journal.execute("UPDATE steps SET loss = loss + 1e-9 WHERE step = ?", (step - 1,))
            journal.commit()

    def test_one_absurd_sample_is_traced_to_its_file_and_place(self):
        data = self.small_data()
        images = bytearray((data / "train-images-idx3-ubyte").read_bytes())
        label = (data / "train-labels-idx1-ubyte").read_bytes()[8 + 333]
        # The sample has all light in the quadrant of another class.
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
        first = re.search(r"^  loss .*$", self.succeed("replay", run.run_dir, "--step", worst),
                          re.M).group()
        self.assertEqual(lacking(first, names=["sample 333", f"label {label}",
                                               data / "train-images-idx3-ubyte",
                                               HEADER + 333 * SIDE * SIDE]), [], first)

    def test_what_cannot_be_replayed_is_one_line(self):
        run = self.finish(self.job(self.small_data()), "--workers", 1)
        for args, subjects in ((("--step", 11), ["step 11", 10]), (("--step", 0), ["steps", 1]),
                               (("--step", 3, "--slot", 4), ["slot 4"])):
            answer = replay(run.run_dir, *args)
            self.assert_fails(answer, 64, names=subjects)
            self.assertEqual(len(answer.stderr.splitlines()), 1, answer.stderr)


if __name__ == "__main__":
    unittest.main()
