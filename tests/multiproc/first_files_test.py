"""A run is killed as a whole, before each change that it makes in its run directory until it trains.
Afterwards one of its two commands goes on, every time.
"""
import os
import pathlib
import shutil
import signal
import subprocess
import unittest

from harness import BIN, LockstepTest, Run, processes_of, synthetic_dataset

KILL_AT = BIN.parent / "tests" / "liblockstep_kill_at.so"
EVERY = int(os.environ.get("LOCKSTEP_KILL_AT_EVERY", 4))  # 1: before each change


class FirstFiles(LockstepTest):
    def setUp(self):
        super().setUp()
        self.data = synthetic_dataset(self.scratch / "data", train=200, evaluation=20)
        self.file = self.job(self.data, data={"train": {"path": str(self.data)}},
                             model={"name": "mlp"},
                             train={"global_batch": 50, "slots": 1, "epochs": 1})
        self.count = self.scratch / "count"

    def killing(self, run_dir, at):
        self.count.unlink(missing_ok=True)
        return {**self.environment(), "LD_PRELOAD": str(KILL_AT), "LOCKSTEP_TEST_KILL_AT": str(at),
                "LOCKSTEP_TEST_KILL_IN": str(run_dir), "LOCKSTEP_TEST_KILL_COUNT": str(self.count)}

    def counted(self):
        return self.count.stat().st_size if self.count.exists() else 0

    def start_in(self, run_dir, *words, env=None):
        run = Run([*words, "--workers", 1], run_dir, env or self.environment())
        self.runs.append(run)
        return run

    def begins(self, run_dir, *words):
        """Starts until a coordinator serves; the output of a refusal."""
        run = self.start_in(run_dir, *words)
        def outcome():
            return run.process.poll() is not None or (run_dir / "coordinator.json").exists()
        try:
            run.wait_for(outcome, "it served")
        except AssertionError:
            pass
        if run.process.poll() is None:
            os.killpg(run.process.pid, signal.SIGKILL)
            run.wait()
            return None
        return None if run.process.returncode == 0 else run.text()

    def assert_goes_on(self, run_dir, at):
        """Goes on as a user does who reads the message."""
        (run_dir / "coordinator.json").unlink(missing_ok=True)
        refusal = self.begins(run_dir, self.file)
        if refusal and "--resume" in refusal:
            refusal = self.begins(run_dir, "--resume")
        self.assertIsNone(refusal, f"killed before change {at}")

    def test_a_kill_before_any_change_leaves_a_directory_that_starts(self):
        at = 1
        while True:
            run_dir = self.scratch / f"run-{at}"
            run = self.start_in(run_dir, self.file, env=self.killing(run_dir, at))
            code = run.wait()
            if code != -signal.SIGKILL:
                break
            self.assertEqual(self.counted(), at)
            if run_dir.exists():
                before_the_run = not (run_dir / "journal.db").exists()
                if before_the_run or at % EVERY == 0:
                    self.assert_goes_on(run_dir, at)
            if (run_dir / "history.jsonl").exists() and (run_dir / "history.jsonl").stat().st_size:
                break  # it has trained
            shutil.rmtree(run_dir, ignore_errors=True)
            at += 1
        self.assertGreater(at, 30, "it counted the changes")

    def test_names_of_half_written_files_are_an_empty_directory(self):
        for name in ("job.pb.tmp.77", "token.tmp.1", "terms.tmp.node-b-9", "pulse.tmp.1",
                     "journal.db.tmp.rebuild"):
            with self.subTest(name):
                run_dir = self.scratch / name
                run_dir.mkdir(mode=0o700)
                (run_dir / name).write_bytes(b"half")
                run = self.start_in(run_dir, self.file)
                self.assertEqual(run.wait(), 0, run.text()[-2000:])
                self.assert_nothing_left(run)

    def test_a_file_of_somebody_elses_is_still_refused(self):
        for name in ("thesis.tmp.77", "job.pb.bak"):
            with self.subTest(name):
                run_dir = self.scratch / name
                run_dir.mkdir(mode=0o700)
                (run_dir / name).write_text("mine")
                run = self.start_in(run_dir, self.file)
                self.assert_fails(run, 64, names=run_dir, advises="--run-dir")


if __name__ == "__main__":
    unittest.main()
