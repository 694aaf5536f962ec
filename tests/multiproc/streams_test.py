"""Descriptors 0 to 2 as they should not be: closed, or leading to a disk that is full."""
import os
import signal
import subprocess
import unittest

from harness import BIN, DEADLINE_S, LockstepTest, lockstep

TRAIN = {"global_batch": 64, "slots": 4, "max_steps": 12}
FULL = "/dev/full"  # every write to it says that there is no room


class FullDevice(LockstepTest):
    def assert_lost(self, *words, code=70):
        with self.subTest(words=words), open(FULL, "wb") as full:
            ended = subprocess.run([BIN / "lockstep", *map(str, words)], stdout=full,
                                   stderr=subprocess.PIPE, text=True, timeout=DEADLINE_S)
            self.assert_fails(ended, code, says="stdout", advises="room")

    def test_no_command_says_that_all_is_well(self):
        job = self.job(self.small_data(), train=TRAIN, checkpoint={"every_steps": 5})
        run_dir = self.finish(job, "--workers", 1).run_dir
        for words in (["--help"], ["--version"], ["version", "--json"], ["completion", "bash"],
                      ["run", job, "--print-config"], ["run", "--help-job", "all"],
                      ["sbatch", job, "--run-dir", "/shared/run", "--nodes", 2],
                      ["k8s", "render", job, "--kind", "job", "--image", "registry/lockstep:1",
                       "--run-claim", "runs", "--data-claim", "data", "--workers", 2],
                      ["audit", run_dir], ["report", run_dir],
                      ["ckpt", "verify", run_dir], ["export", "tensorboard", run_dir],
                      ["data", "inspect", self.small_data()], ["replay", run_dir, "--step", 3]):
            self.assert_lost(*words)
        self.assert_lost("status", run_dir, code=3)  # it is not running

    def test_a_run_trains_to_its_end(self):
        job = self.job(self.small_data(), train=TRAIN)
        whole = self.finish(job, "--workers", 1, name="whole")
        with open(FULL, "wb") as full:
            ended = subprocess.run([BIN / "lockstep", "run", job, "--workers", "1", "--run-dir",
                                    self.scratch / "run"], stdout=full, timeout=DEADLINE_S)
        self.assertEqual(ended.returncode, 0)
        whole.run_dir = self.scratch / "run"
        self.audit(whole)


class Closed(LockstepTest):
    def closed(self, *words, expect=0):
        """Runs a command with stdin, stdout and stderr closed."""
        ended = subprocess.run(["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", BIN / "lockstep",
                                *map(str, words)], timeout=DEADLINE_S)
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


EVIL = "evil\x1b]0;owned\x07\x1b[2J\u202e"


class Escapes(LockstepTest):
    """Names that others choose never steer a reader's terminal."""
    slot_ms = 5

    def assert_harmless(self, text):
        self.assertIn("evil", text)
        for character in "\x1b\x07\u202e\u009b":
            self.assertNotIn(character, text)

    def test_names_of_nodes(self):
        job = self.job(self.small_data(), train={**TRAIN, "max_steps": 2000},
                       model={"name": "mlp"})
        run = self.start(job, "--workers", 2, env={**os.environ, "LOCKSTEP_NODE": EVIL})
        run.wait_for_step(5)
        for words in (["status", run.run_dir], ["top", run.run_dir, "--once"],
                      ["drain", run.run_dir, "--node", EVIL + "2"]):
            with self.subTest(words[0]):
                ended = lockstep(*words)
                self.assert_harmless(ended.stdout + ended.stderr)
        os.kill(run.worker(1), signal.SIGKILL)
        run.wait_for(lambda: "evil" in run.text(), "the console told of it")
        run.process.send_signal(signal.SIGTERM)
        self.assertEqual(run.wait(), 75, run.text()[-2000:])
        self.assert_harmless(run.text())

    def test_names_of_files(self):
        data = self.small_data()
        evil = self.scratch / EVIL
        data.rename(evil)
        path = evil / "train-images-idx3-ubyte"
        path.write_bytes(path.read_bytes()[:2000])
        for words in (["data", "verify", evil], ["data", "inspect", evil], ["run", self.job(evil)],
                      ["status", evil], ["audit", evil], [EVIL]):
            with self.subTest(words[0]):
                ended = lockstep(*words)
                self.assertNotEqual(ended.returncode, 0)
                self.assert_harmless(ended.stdout + ended.stderr)


if __name__ == "__main__":
    unittest.main()
