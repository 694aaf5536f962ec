"""`lockstep doctor` on jobs with a planted bottleneck: it names what was planted, and its advice
mends it."""
import os
import signal
import subprocess
import unittest

import doctor_world
from harness import BIN, DEADLINE_S, LockstepTest, lockstep


class Doctor(LockstepTest):
    def diagnose(self, planted, *args):
        try:
            job, mount = doctor_world.PLANTED[planted](self.scratch)
        except doctor_world.CannotMount as refused:
            self.skipTest(f"no file system in user space can be mounted here: {refused}")
        if mount is not None:
            self.addCleanup(mount.close)
        return doctor_world.examine(job, *args, temporary=self.temporary)

    def rates(self, found):
        return {rung["name"]: rung["samples_per_second"] for rung in found["rungs"]}

    @unittest.skipIf(doctor_world.why_no_fuse(), doctor_world.why_no_fuse())
    def test_a_slow_disk_is_named_storage(self):
        found = self.diagnose("storage")
        self.assertEqual(found["finding"]["fault"], "storage", found)
        rates = self.rates(found)
        self.assertLess(rates["raw_cold"], rates["trainer"])

    def test_images_that_are_slow_to_decode_on_all_cores_are_named_decode(self):
        found = self.diagnose("decode")
        self.assertEqual(found["finding"]["fault"], "decode", found)

    @unittest.skipIf(len(os.sched_getaffinity(0)) < 2, "needs two cores")
    def test_too_few_threads_are_named_and_applied_they_are_as_many_as_cores(self):
        both = self.diagnose("threads", "--apply")
        before, after = both["before"], both["after"]
        self.assertEqual(before["finding"]["fault"], "threads", before)
        cores = before["cores"]
        self.assertEqual(before["finding"]["changes"],
                         [{"key": "data.threads", "value": str(cores), "new_run_only": False}])
        self.assertEqual((before["data_threads"], after["data_threads"]), (1, cores))
        self.assertEqual(after["finding"]["fault"], "decode", after)

    def test_a_tiny_batch_is_named_and_a_larger_one_advised(self):
        found = self.diagnose("tiny_batch")
        self.assertEqual(found["finding"]["fault"], "tiny_batch", found)
        change = found["finding"]["changes"][0]
        self.assertEqual(change["key"], "train.global_batch")
        self.assertGreater(int(change["value"]), found["global_batch"])
        self.assertTrue(change["new_run_only"])

    def test_a_job_that_computes_all_the_time_has_no_fault(self):
        found = self.diagnose("none")
        self.assertEqual(found["finding"]["fault"], "none", found)
        rates = self.rates(found)
        self.assertGreater(rates["loader"], rates["trainer"])

    def test_an_end_in_the_middle_leaves_nothing(self):
        job, _ = doctor_world.no_fault(self.scratch)
        room = self.scratch / "room"
        room.mkdir()
        for end in (signal.SIGINT, signal.SIGKILL):
            process = subprocess.Popen([BIN / "lockstep", "doctor", job], stderr=subprocess.PIPE,
                                       stdout=subprocess.DEVNULL, text=True,
                                       env={**os.environ, "TMPDIR": str(room)})
            self.assertTrue(process.stderr.readline(), "it measures")
            self.assertEqual(len(list(room.iterdir())), 1)
            process.send_signal(end)
            process.communicate(timeout=DEADLINE_S)  # until who removes it has closed stderr, too
            self.assertEqual(process.returncode, -end)
            self.assertEqual(list(room.iterdir()), [])

    def test_a_measurement_that_is_cut_shows_what_it_has(self):
        job, _ = doctor_world.no_fault(self.scratch)
        process = subprocess.Popen([BIN / "lockstep", "doctor", job, "--seconds", "600"],
                                   stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                   env={**os.environ, "TMPDIR": str(self.temporary)})
        self.addCleanup(process.kill)
        for line in process.stderr:
            if "loading batches" in line:  # reading is measured
                break
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=DEADLINE_S)
        self.assertEqual(process.returncode, -signal.SIGINT)
        self.assertIn("raw reads", out)
        self.assertIn("--seconds", out)

    def test_slow_steps_do_not_take_longer_than_the_time_that_is_given(self):
        # Ten windows of two kinds of steps, and steps to warm up, as it was: 26 steps and more.
        job, _ = doctor_world.no_fault(self.scratch)
        found = doctor_world.examine(job, temporary=self.temporary, seconds=4,
                                     env=self.environment(slot_ms=500))
        trainer = next(rung for rung in found["rungs"] if rung["name"] == "trainer")
        self.assertLess(trainer["windows"], 5)

    def test_what_is_wrong_with_a_job_is_said_in_a_line(self):
        job, _ = doctor_world.no_fault(self.scratch)
        for overrides, code, subject in (
                (["train.global_batch=auto"], 64, "train.global_batch"),
                (["data.train.path=/nowhere"], 66, "/nowhere"),
                (["model.batch_norm=true", "model.name=mlp", "train.global_batch=1"], 78,
                 "model.batch_norm")):
            seen = lockstep("doctor", job, "--seconds", 1, "--workers", 1, *overrides,
                            env={**os.environ, "TMPDIR": str(self.temporary)})
            self.assert_fails(seen, code, names=subject)


if __name__ == "__main__":
    unittest.main()
