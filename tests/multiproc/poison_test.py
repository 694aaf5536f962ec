"""A sample kills every worker that reads it: the end of the last sample lies in a page that the
workers' loaders must not read (unreadable.cc).
"""
import os
import random
import re
import unittest

from harness import BIN, LockstepTest, write_idx

SIDE = 12
SAMPLE_BYTES = SIDE * SIDE
HEADER_BYTES = 16
PAGES = 600
# Only the last sample reaches beyond so many pages.
SAMPLES = (PAGES * 4096 - HEADER_BYTES) // SAMPLE_BYTES + 1
UNREADABLE = BIN.parent / "tests" / "liblockstep_unreadable.so"

# In the order of this seed the last sample lies well inside of the first epoch.
SEED, STEP = 8, 713
SECTIONS = {"seed": SEED, "model": {"name": "mlp"}, "optimizer": {"name": "adamw", "lr": 0.0001},
            "train": {"global_batch": 16, "slots": 8, "epochs": 1},
            "checkpoint": {"every_steps": 125, "keep": 2}}


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

    def poison(self, workers=3, ahead=1, **train):
        """Runs the job: (job, run, exit code, how many workers died of the last sample)."""
        job = self.job(self.data, **{**SECTIONS, "train": {**SECTIONS["train"], **train},
                                     "data": {"train": {"path": str(self.data)},
                                              "eval": {"path": ""}, "prefetch_batches": ahead}})
        self.assertTrue(UNREADABLE.exists(), f"{UNREADABLE} is not there: build lockstep_unreadable")
        run = self.start(job, "--workers", workers,
                         env={**os.environ, "LD_PRELOAD": str(UNREADABLE),
                              "LOCKSTEP_TEST_UNREADABLE": str(self.images)})
        code = run.wait()
        # A much earlier death would have another cause.
        self.assertGreater(len(run.history()), STEP // 2, run.text()[-3000:])
        self.assert_no_crash(run.text())
        self.assert_nothing_left(run)
        log = (run.run_dir / "logs" / "agent.log.jsonl").read_text()
        return job, run, code, log.count("signal 11")

    def suspected(self, text):
        """The positions that the text names."""
        begin, end = re.search(r"positions \[(\d+), (\d+)\) of epoch 1", text).groups()
        return range(int(begin), int(end))

    def place_in(self, run):
        """The position of the last sample, as a replay of the step finds it."""
        _, step = self.outcome("replay", run.run_dir, "--step", STEP + 1)
        place = re.search(rf"position (\d+) sample {SAMPLES - 1} ", step)
        self.assertTrue(place, step)
        return int(place.group(1))

    def test_it_kills_two_workers_its_place_is_named_and_where_it_can_be_read_the_run_goes_on(self):
        job, run, code, deaths = self.poison()
        self.assertEqual((code, deaths), (65, 2), run.text()[-3000:])
        positions = self.suspected(run.text())
        self.assertEqual(len(positions), 2, "a slot's")
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
        rest = self.finish(job, "--resume", "--workers", 2)
        self.assertIn(self.place_in(rest), positions)

    def test_of_two_workers_nobody_is_left_and_its_place_is_named_all_the_same(self):
        job, run, code, deaths = self.poison(workers=2, ahead=2)
        self.assertEqual((code, deaths), (65, 2), run.text()[-3000:])
        positions = self.suspected(run.text())
        self.assertEqual(len(positions), 2, "a slot's")
        rest = self.finish(job, "--resume", "--workers", 1)
        self.assertIn(self.place_in(rest), positions)

    def test_with_the_policy_skip_its_place_is_left_out_and_the_run_goes_on(self):
        _, run, code, deaths = self.poison(on_bad_samples="skip")
        self.assertEqual((code, deaths), (0, 2), run.text()[-3000:])
        [skipped] = self.audit(run)["skipped_by_policy"]
        self.assertEqual((skipped["epoch"], skipped["step"]), (1, STEP + 1))
        begin, end = skipped["positions"]
        self.assertEqual(sum(row["samples"] for row in run.history()), SAMPLES - (end - begin))
        self.succeed("replay", run.run_dir, "--step", STEP + 1)
        self.assertIn(self.place_in(run), range(begin, end))


if __name__ == "__main__":
    unittest.main()
