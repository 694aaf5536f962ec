"""Descriptors 0 to 2 as they should not be: closed, or leading to a disk that is full."""
import subprocess
import unittest

from harness import BIN, LockstepTest

TRAIN = {"global_batch": 64, "slots": 4, "max_steps": 12}
FULL = "/dev/full"  # every write to it says that there is no room


class FullDevice(LockstepTest):
    def assert_lost(self, *words, program="lockstep"):
        with self.subTest(words=words), open(FULL, "wb") as full:
            ended = subprocess.run([BIN / program, *map(str, words)], stdout=full,
                                   stderr=subprocess.PIPE, text=True, timeout=300)
            self.assert_fails(ended, 70, says="stdout", advises="room")

    def test_no_command_says_that_all_is_well(self):
        job = self.job(self.small_data(), train=TRAIN, checkpoint={"every_steps": 5})
        run_dir = self.finish(job, "--workers", 1).run_dir
        for words in (["--help"], ["--version"], ["version", "--json"], ["completion", "bash"],
                      ["run", job, "--print-config"], ["run", "--help-job", "all"],
                      ["sbatch", job, "--run-dir", "/shared/run", "--nodes", 2],
                      ["k8s", "render", job, "--image", "registry/lockstep:1", "--pods", 2],
                      ["audit", run_dir], ["status", run_dir], ["report", run_dir],
                      ["ckpt", "verify", run_dir], ["export", "tensorboard", run_dir],
                      ["data", "inspect", self.small_data()], ["replay", run_dir, "--step", 3]):
            self.assert_lost(*words)

    def test_a_run_trains_to_its_end(self):
        job = self.job(self.small_data(), train=TRAIN)
        whole = self.finish(job, "--workers", 1, name="whole")
        with open(FULL, "wb") as full:
            ended = subprocess.run([BIN / "lockstep", "run", job, "--workers", "1", "--run-dir",
                                    self.scratch / "run"], stdout=full, timeout=300)
        self.assertEqual(ended.returncode, 0)
        whole.run_dir = self.scratch / "run"
        self.audit(whole)


class Closed(LockstepTest):
    def closed(self, *words, expect=0):
        """Without any of the three."""
        ended = subprocess.run(["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", BIN / "lockstep",
                                *map(str, words)], timeout=300)
        self.assertEqual(ended.returncode, expect)

    def assert_nowhere(self, text, directory):
        for path in directory.rglob("*"):
            if path.is_file():
                self.assertNotIn(text.encode(), path.read_bytes(), path)

    def test_a_run_keeps_its_files_and_its_result(self):
        job = self.job(self.small_data(), train=TRAIN, checkpoint={"every_steps": 5})
        whole = self.finish(job, "--workers", 1, name="whole")
        run_dir = self.scratch / "run"
        self.closed("run", job, "--workers", 2, "--run-dir", run_dir)
        self.assert_nowhere("run directory " + str(run_dir), run_dir)
        run = self.finish(job, "--workers", 2, "--resume", name="run")
        self.assert_same_result(run, whole)

    def test_an_export_writes_no_text_into_its_event_files(self):
        job = self.job(self.small_data(), train=TRAIN)
        run_dir = self.finish(job, "--workers", 1).run_dir
        self.closed("export", "tensorboard", run_dir)
        self.assert_nowhere(str(run_dir), run_dir / "tensorboard")
        self.assertTrue(list((run_dir / "tensorboard").iterdir()))

    def test_a_refusal_gets_into_no_file(self):
        job = self.job(self.small_data(), train={**TRAIN, "globl_batch": 3})
        self.closed("run", job, "--run-dir", self.scratch / "run", expect=64)
        self.assertFalse((self.scratch / "run").exists())


if __name__ == "__main__":
    unittest.main()
