"""A user who may write to a run directory could run code as its owner, so commands refuse a
directory that others may write."""
import os
import shutil
import subprocess
import unittest

from harness import BIN, DEADLINE_S, LockstepTest, Run, lockstep

STRANGER = 54321  # a uid that no user has here
TRUST = {"LOCKSTEP_TRUST_RUN_DIR": "1"}


@unittest.skipUnless(os.geteuid() == 0, "only root can give files to another user")
class Trust(LockstepTest):
    def setUp(self):
        super().setUp()
        self.file = self.job(self.small_data(), model={"name": "mlp"},
                             train={"global_batch": 100, "slots": 1, "epochs": 1})
        self.run_dir = self.scratch / "run"

    def train(self, *words, env=None):
        run = Run([*(words or [self.file, "--workers", 1])], self.run_dir,
                  {**self.environment(), **(env or {})})
        self.runs.append(run)
        run.wait()
        return run

    def trained(self):
        self.assertEqual(self.train().process.returncode, 0)

    def test_a_run_directory_is_made_for_its_owner_alone(self):
        before = os.umask(0o002)
        try:
            self.trained()
        finally:
            os.umask(before)
        self.assertEqual(self.run_dir.stat().st_mode & 0o777, 0o700)

    def test_a_directory_that_others_may_write_is_refused(self):
        self.trained()
        self.run_dir.chmod(0o755)  # with mode 0700 no other user reaches its files
        [model] = self.run_dir.glob("checkpoints/*/model.safetensors")
        for path in (self.run_dir, self.run_dir / "logs", self.run_dir / "job.pb", model):
            for mode in (0o020, 0o002):
                with self.subTest(path=path.name, mode=oct(mode)):
                    before = path.stat().st_mode
                    path.chmod(before | mode)
                    resumed = self.train("--resume")
                    self.assert_fails(resumed, 78, names=path, advises="go-w")
                    path.chmod(before)
        self.assertEqual(self.train("--resume").process.returncode, 0)

    def test_what_another_user_made_is_refused(self):
        self.run_dir.mkdir(mode=0o700)
        os.chown(self.run_dir, STRANGER, STRANGER)
        self.assert_fails(self.train(), 78, names=[self.run_dir, STRANGER], advises="--run-dir")
        self.assertEqual(list(self.run_dir.iterdir()), [], "nothing was written there")
        self.assertEqual(self.train(env=TRUST).process.returncode, 0)

    def test_a_job_of_another_user_is_not_loaded_by_any_program(self):
        self.trained()
        job = self.run_dir / "job.pb"
        os.chown(job, STRANGER, STRANGER)
        self.assert_fails(self.train("--resume"), 78, names=[job, STRANGER])
        self.assert_fails(lockstep("agent", "--run-dir", self.run_dir, "--workers", 1), 78,
                          names=[job, STRANGER])
        self.assert_fails(lockstep("replay", self.run_dir, "--step", 1), 78, names=[job, STRANGER])
        worker = subprocess.run([BIN / "lockstep-worker", "--run-dir", self.run_dir,
                                 "--local-rank", "0", "--node", "here"],
                                capture_output=True, text=True, timeout=DEADLINE_S)
        self.assertNotEqual(worker.returncode, 0)
        self.assertIn(str(STRANGER), worker.stderr)

    def test_a_trained_model_of_another_user_is_used_by_no_command_and_shown_by_all(self):
        self.trained()
        subprocess.run(["chown", "-R", str(STRANGER), self.run_dir], check=True)
        for words in (["eval", self.run_dir], ["predict", self.run_dir, self.scratch / "data"],
                      ["export", "model", self.run_dir, self.scratch / "out"]):
            with self.subTest(words[0]):
                self.assert_fails(lockstep(*words), 78, names=[self.run_dir, STRANGER])
        for code, *words in ((3, "status", self.run_dir), (0, "runs", self.run_dir),
                             (0, "audit", self.run_dir), (0, "top", self.run_dir, "--once")):
            with self.subTest(words[0]):
                shown = lockstep(*words)
                self.assertEqual((shown.returncode, shown.stderr), (code, ""), shown.stdout)

    def test_a_link_that_another_user_has_put_there_is_not_followed(self):
        self.trained()
        victim = self.scratch / "victim"
        victim.write_text("precious\n")
        for link in (self.run_dir / "logs" / "coordinator.log.jsonl",
                     self.run_dir / "history.jsonl", self.run_dir / "checkpoints" / "step-link"):
            with self.subTest(link.name):
                kept = self.scratch / "kept"
                if link.exists():
                    shutil.move(link, kept)
                link.symlink_to(victim)
                os.chown(link, STRANGER, STRANGER, follow_symlinks=False)
                self.assert_fails(self.train("--resume"), 78, names=[link, STRANGER])
                link.unlink()
                if kept.exists():
                    shutil.move(kept, link)
        self.assertEqual(victim.read_text(), "precious\n")

    def test_a_log_is_never_written_through_a_link(self):
        self.trained()
        victim = self.scratch / "victim"
        victim.write_text("precious\n")
        log = self.run_dir / "logs" / "coordinator.log.jsonl"
        log.unlink()
        log.symlink_to(victim)
        resumed = self.train("--resume", "train.epochs=2")
        self.assertNotEqual(resumed.process.returncode, 0)
        self.assertIn(str(log), resumed.text())
        self.assertEqual(victim.read_text(), "precious\n")


if __name__ == "__main__":
    unittest.main()
