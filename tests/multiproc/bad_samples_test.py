"""Losses that are no number or a spike (train.on_bad_samples), with real processes."""
import contextlib
import re
import sqlite3
import unittest

from harness import LockstepTest, write_idx

HEADER = 16  # of an IDX file of three dimensions
SIDE = 12
ABSURD = 333  # number of a sample


class BadSamples(LockstepTest):
    def exploding_job(self, checkpoint_steps=5, **train):
        """A learning rate with which the weights are beyond all numbers after a few steps."""
        return self.job(self.small_data(), optimizer={"name": "sgd", "lr": 1e25},
                        train={"global_batch": 64, "slots": 4, "epochs": 2, **train},
                        checkpoint={"every_steps": checkpoint_steps})

    def absurd_data(self):
        """One sample is all light in the quadrant of another class."""
        data = self.small_data()
        images = bytearray((data / "train-images-idx3-ubyte").read_bytes())
        label = (data / "train-labels-idx1-ubyte").read_bytes()[8 + ABSURD]
        for y in range(SIDE):
            for x in range(SIDE):
                bright = (y >= SIDE // 2) * 2 + (x >= SIDE // 2) == (label + 1) % 4
                images[HEADER + ABSURD * SIDE * SIDE + y * SIDE + x] = 255 if bright else 0
        write_idx(data / "train-images-idx3-ubyte", 0x803, (600, SIDE, SIDE),
                  bytes(images[HEADER:]))
        return data

    def spiking_job(self, **train):
        return self.job(self.absurd_data(), checkpoint={"every_steps": 7},
                        train={"global_batch": 64, "slots": 4, "epochs": 13, "loss_spike": 20,
                               **train})

    def skips_of(self, run):
        with contextlib.closing(sqlite3.connect(run.run_dir / "journal.db")) as journal:
            return journal.execute("SELECT step, slot_begin, slot_end FROM skips "
                                   "ORDER BY step").fetchall()

    def test_a_loss_that_is_no_number_stops_the_run_and_the_step_can_be_looked_into(self):
        # Whether one of the checkpoints, which are cut afterwards, had reached the disk, or none.
        for checkpoint_steps in (5, 1000):
            with self.subTest(checkpoint_steps=checkpoint_steps):
                self.check_stopped_by_samples(checkpoint_steps)

    def check_stopped_by_samples(self, checkpoint_steps):
        run = self.start(self.exploding_job(checkpoint_steps), "--workers", 2,
                         name=f"run{checkpoint_steps}")
        self.assert_fails(run, 65, says="loss",
                          advises=["train.on_bad_samples=skip", "lockstep replay"])
        self.assert_nothing_left(run)
        step = int(re.search(r"replay \S+ --step (\d+)", run.summary()["message"]).group(1))
        self.assertGreater(step, 1)
        self.assertRegex(self.succeed("replay", run.run_dir, "--step", step),
                         r"\nloss -?(nan|inf)\n")

    def test_where_leaving_the_step_out_does_not_help_the_run_stops(self):
        run = self.start(self.exploding_job(on_bad_samples="skip"), "--workers", 2)
        self.assert_fails(run, 65, says="loss")
        self.assertEqual(len(self.skips_of(run)), 1)
        self.assert_nothing_left(run)

    def test_steps_with_an_absurd_sample_are_left_out_with_the_same_bits_for_any_world(self):
        run = self.finish(self.spiking_job(on_bad_samples="skip"), "--workers", 3)
        skips = self.skips_of(run)
        self.assertGreaterEqual(len(skips), 1, run.history())
        self.assertEqual({(begin, end) for _, begin, end in skips}, {(0, 4)})
        lines = run.history()
        self.assertEqual([line["step"] for line in lines], list(range(1, 131)))
        self.assertEqual([line["step"] - 1 for line in lines if line["samples"] == 0],
                         [step for step, _, _ in skips])
        for step, _, _ in skips:  # it was the sample's fault
            text = self.succeed("replay", run.run_dir, "--step", step + 1)
            worst = re.search(r"^  loss .*$", text, re.M).group()
            self.assertIn(f"sample {ABSURD} ", worst)
        alone = self.finish(self.spiking_job(on_bad_samples="skip"), "--workers", 1, name="alone")
        self.assertEqual(self.skips_of(alone), skips)
        self.assert_same_result(run, alone)

    def test_a_spike_stops_the_run_and_the_resume_leaves_it_out_where_that_is_wanted(self):
        run = self.start(self.spiking_job(), "--workers", 2)
        self.assert_fails(run, 65, names="train.loss_spike", advises="train.on_bad_samples=skip")
        self.assertEqual(self.skips_of(run), [])
        job = self.scratch / "job.yaml"
        self.finish(job, "--workers", 2, "--resume", "train.on_bad_samples=skip")
        alone = self.finish(self.spiking_job(on_bad_samples="skip"), "--workers", 1, name="alone")
        self.assert_same_result(run, alone)


if __name__ == "__main__":
    unittest.main()
