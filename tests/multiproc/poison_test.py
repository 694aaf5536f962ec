"""A sample that kills whoever reads it. The data file is cut off within its last sample while the
run trains: the workers have it mapped, so that touching the part that is gone is a SIGBUS.
"""
import os
import random
import re
import subprocess
import unittest

from harness import BIN, LockstepTest, write_idx

SIDE = 12
SAMPLE_BYTES = SIDE * SIDE
HEADER_BYTES = 16
PAGES = 2000
# The last sample alone reaches beyond so many pages.
CUT_AT = PAGES * 4096
SAMPLES = (CUT_AT - HEADER_BYTES) // SAMPLE_BYTES + 1

# In the order of this seed the last sample lies well inside of the first epoch.
SEED, STEP = 8, 2800
SECTIONS = {"seed": SEED, "model": {"name": "mlp"}, "optimizer": {"name": "adamw", "lr": 0.0001},
            "train": {"global_batch": 16, "slots": 8, "epochs": 1},
            "checkpoint": {"every_steps": 500, "keep": 2}}


class Poison(LockstepTest):
    def setUp(self):
        super().setUp()
        self.data = self.scratch / "data"
        self.data.mkdir()
        rng = random.Random(5)
        self.images = self.data / "train-images-idx3-ubyte"
        write_idx(self.images, 0x803, (SAMPLES, SIDE, SIDE), rng.randbytes(SAMPLES * SAMPLE_BYTES))
        write_idx(self.data / "train-labels-idx1-ubyte", 0x801, (SAMPLES,),
                  bytes(byte % 4 for byte in rng.randbytes(SAMPLES)))
        self.whole = self.images.read_bytes()

    def poison(self, workers=3, ahead=1, **train):
        """Runs, and cuts the file off before the last sample's turn. Gives how many died of it."""
        job = self.job(self.data, **{**SECTIONS, "train": {**SECTIONS["train"], **train},
                                     "data": {"train": {"path": str(self.data)},
                                              "eval": {"path": ""}, "prefetch_batches": ahead}})
        run = self.start(job, "--workers", workers)
        run.wait_for_step(20)
        os.truncate(self.images, CUT_AT)
        self.assertLess(len(run.history()), STEP, "the sample was not read yet")
        code = run.wait()
        self.assert_clear_line(run)
        self.assert_nothing_left(run)
        log = (run.run_dir / "logs" / "agent.log.jsonl").read_text()
        return job, run, code, log.count("signal 7")

    def suspected(self, text):
        """The positions that are named."""
        begin, end = re.search(r"positions \[(\d+), (\d+)\) of epoch 1", text).groups()
        return range(int(begin), int(end))

    def mend(self):
        self.images.write_bytes(self.whole)

    def lockstep(self, *words):
        return subprocess.run([BIN / "lockstep", *map(str, words)], capture_output=True, text=True,
                              timeout=120)

    def place_in(self, run):
        """The position of the last sample, as a replay of the step finds it."""
        step = self.lockstep("replay", run.run_dir, "--step", STEP + 1).stdout
        place = re.search(rf"position (\d+) sample {SAMPLES - 1} ", step)
        self.assertTrue(place, step)
        return int(place.group(1))

    def test_it_kills_two_workers_its_place_is_named_and_with_mended_data_the_run_goes_on(self):
        job, run, code, deaths = self.poison()
        self.assertEqual((code, deaths), (65, 2), run.text()[-3000:])
        positions = self.suspected(run.text())
        self.assertEqual(len(positions), 2, "a slot's")
        self.mend()
        rest = self.finish(job, "--resume", "--workers", 2)
        undisturbed = self.finish(job, "--workers", 1, name="undisturbed")
        self.assert_same_result(rest, undisturbed)
        self.assertIn(self.place_in(rest), positions)

    def test_read_far_ahead_it_kills_two_and_its_place_is_named_all_the_same(self):
        # They die while they still compute earlier steps.
        job, run, code, deaths = self.poison(workers=4, ahead=4, slots=4)
        self.assertEqual((code, deaths), (65, 2), run.text()[-3000:])
        positions = self.suspected(run.text())
        self.assertEqual(len(positions), 4, "a slot's")
        self.mend()
        rest = self.finish(job, "--resume", "--workers", 2)
        self.assertIn(self.place_in(rest), positions)

    def test_of_two_workers_nobody_is_left_and_its_place_is_named_all_the_same(self):
        job, run, code, deaths = self.poison(workers=2, ahead=2)
        self.assertEqual((code, deaths), (65, 2), run.text()[-3000:])
        positions = self.suspected(run.text())
        self.assertEqual(len(positions), 2, "a slot's")
        self.mend()
        rest = self.finish(job, "--resume", "--workers", 1)
        self.assertIn(self.place_in(rest), positions)

    def test_with_the_policy_skip_its_place_is_left_out_and_the_run_goes_on(self):
        _, run, code, deaths = self.poison(on_bad_samples="skip")
        self.assertEqual((code, deaths), (0, 2), run.text()[-3000:])
        audit = self.lockstep("audit", run.run_dir)
        self.assertEqual(audit.returncode, 0, audit.stdout + audit.stderr)
        begin, end = map(int, re.search(rf"skipped by policy: epoch 1, step {STEP + 1}, slots .*, "
                                        r"positions \[(\d+), (\d+)\)", audit.stdout).groups())
        self.assertEqual(audit.stdout.count("skipped by policy: "), 1, audit.stdout)
        self.assertEqual(sum(row["samples"] for row in run.history()), SAMPLES - (end - begin))
        self.mend()
        step = self.lockstep("replay", run.run_dir, "--step", STEP + 1)
        self.assertEqual(step.returncode, 0, step.stdout + step.stderr)
        self.assertIn("the recorded losses again, bit for bit", step.stdout)
        self.assertIn(self.place_in(run), range(begin, end))


if __name__ == "__main__":
    unittest.main()
