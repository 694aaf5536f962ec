"""`lockstep audit` over real runs finds every sample once, whatever happened to them, and says
so."""
import contextlib
import json
import os
import pathlib
import signal
import sqlite3
import unittest

from harness import LockstepTest, kill_at_once, lockstep, processes_of

LONG = {"global_batch": 64, "slots": 4, "epochs": 5000}


def contents(directory):
    """The bytes of every file below a directory, by name."""
    directory = pathlib.Path(directory)
    return {str(path.relative_to(directory)): path.read_bytes()
            for path in sorted(directory.rglob("*")) if path.is_file()}


class Audit(LockstepTest):
    def assert_clean(self, run, epochs, samples):
        """Checks the audit's JSON, and that the audit for people succeeds."""
        found = self.audit(run)
        self.assertEqual((found["whole_epochs"], found["samples"]), (epochs, samples))
        self.succeed("audit", run.run_dir)
        return found

    def test_a_run_with_deaths_of_workers_and_coordinator_is_proven_and_not_touched(self):
        epochs = 30  # of 10 steps
        job = self.job(self.small_data(),
                       train={"global_batch": 64, "slots": 4, "epochs": epochs},
                       checkpoint={"every_steps": 50})
        run = self.start(job, "--workers", 3, slot_ms=10)
        run.wait_for_step(40)
        os.kill(run.worker(1), signal.SIGKILL)
        run.wait_for_step(len(run.history()) + 60)
        os.kill(run.coordinator()["pid"], signal.SIGKILL)
        self.assertEqual(run.wait(), 0, run.text()[-3000:])
        before = contents(run.run_dir)
        found = self.assert_clean(run, epochs, epochs * 600)
        self.assertEqual(found["generations"][1]["reason"], "death")
        self.assertEqual(contents(run.run_dir), before)
        rows = json.loads(self.succeed("audit", run.run_dir, "--json", "--steps", "10:12"))["rows"]
        self.assertEqual([row["step"] for row in rows], [10, 11, 12])
        self.assertEqual([slot["positions"] for slot in rows[0]["slots"]],
                         [[576, 582], [582, 588], [588, 594], [594, 600]])

    def test_a_run_that_lost_everything_is_told_what_was_rolled_back(self):
        epochs = 30
        job = self.job(self.small_data(),
                       train={"global_batch": 64, "slots": 4, "epochs": epochs},
                       checkpoint={"every_steps": 50})
        run = self.start(job, "--workers", 2, slot_ms=10)
        run.wait_for_step(70)  # after a checkpoint and long before the end
        kill_at_once(run.workers())  # one by one in one step, they look like victims of a sample
        self.assertEqual(run.wait(), 0, run.text()[-3000:])
        self.assertTrue(self.assert_clean(run, epochs, epochs * 600)["rolled_back"])

    def test_a_stopped_run_has_lost_nothing_and_a_living_one_is_left_alone(self):
        run = self.start(self.job(self.small_data(), train=LONG), "--workers", 2)
        run.wait_for_step(15)
        self.assert_fails(lockstep("audit", run.run_dir), 64, names=run.run_dir)
        run.process.send_signal(signal.SIGTERM)
        self.assertEqual(run.wait(), 75)
        steps = len(run.history())
        whole, rest = divmod(steps, 10)
        last = self.assert_clean(run, whole, whole * 600 + rest * 64)["epochs"][-1]
        self.assertEqual((last["steps"], last["whole"]), (rest or 10, rest == 0))

    def test_a_killed_run_is_read_although_its_log_was_never_folded_in(self):
        run = self.start(self.job(self.small_data(), train=LONG), "--workers", 2)
        run.wait_for_step(25)
        coordinator = run.coordinator()["pid"]
        os.kill(coordinator, signal.SIGSTOP)  # so that it does not see the others go, and tidies up
        run.process.kill()
        run.wait()
        for pid in processes_of(run.run_dir):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.assert_nothing_left(run)
        self.assertTrue((run.run_dir / "journal.db-wal").exists())
        before = contents(run.run_dir)
        self.audit(run)
        self.assertEqual(contents(run.run_dir), before)

    def test_a_journal_that_somebody_edited_is_not_audited(self):
        run = self.finish(self.job(self.small_data()), "--workers", 2)
        with contextlib.closing(sqlite3.connect(run.run_dir / "journal.db")) as journal:
            journal.execute("UPDATE identity SET value = '12' WHERE key = 'seed'")
            journal.commit()
        self.assert_fails(lockstep("audit", run.run_dir, "--json"), 65,
                          names=run.run_dir / "journal.db")

    def test_what_is_no_run_is_one_line(self):
        for path, code in ((self.scratch, 66), (self.scratch / "nowhere", 66)):
            answer = lockstep("audit", path)
            self.assert_fails(answer, code, names=path)
            self.assertEqual(len(answer.stderr.splitlines()), 1, answer.stderr)
        run = self.finish(self.job(self.small_data()), "--workers", 1)
        self.assert_fails(lockstep("audit", run.run_dir, "--steps", "3:1"), 64, names="--steps 3:1")


if __name__ == "__main__":
    unittest.main()
