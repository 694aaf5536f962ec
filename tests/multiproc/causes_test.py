"""A failure that repeats reports its cause while the run goes on."""
import contextlib
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import unittest

from fails_with import events
from harness import BIN, DEADLINE_S, LockstepTest, lockstep

LONG = {"global_batch": 64, "slots": 4, "epochs": 5000}


class Unreachable(LockstepTest):
    def test_a_name_that_does_not_resolve_stands_on_the_console_and_in_the_logs(self):
        job = self.job(self.small_data(), model={"name": "mlp"},
                       train={"global_batch": 64, "slots": 4, "max_steps": 2})
        run = self.finish(job, "--workers", 1)
        path = run.run_dir / "coordinator.json"
        path.write_text(json.dumps({**json.loads(path.read_text()),
                                    "control": "trainer.invalid:4000"}))
        run.spawn([str(BIN / "lockstep"), "agent", "--run-dir", str(run.run_dir), "--workers", "1",
                   "--plain-logs"], run.run_dir, self.environment())
        run.wait_for(lambda: any("goes on trying" in line and "trainer.invalid" in line
                                 for line in run.text().splitlines()), "the console named it")
        for log in ("agent", "worker-0"):
            run.wait_for(lambda: events(run, "coordinator_unreachable", log), f"{log} told of it")
            self.assert_event(run, "coordinator_unreachable", names="trainer.invalid", log=log)
        run.process.send_signal(signal.SIGTERM)
        run.wait()


class LastWords(LockstepTest):
    def test_a_coordinator_leaves_its_reason_in_memory_too(self):
        words = os.memfd_create("words")
        self.addCleanup(os.close, words)
        ended = subprocess.run([BIN / "lockstep-coordinator", "--run-dir", self.scratch,
                                "--last-words-fd", str(words)], pass_fds=[words],
                               capture_output=True, text=True, timeout=DEADLINE_S)
        self.assertEqual(ended.returncode, 66, ended.stderr)
        self.assertIn("job.pb", os.pread(words, 4000, 0).decode())


class NotStarted(LockstepTest):
    def test_a_replacement_that_cannot_be_started_is_told_on_the_console(self):
        programs = self.scratch / "bin"
        programs.mkdir()
        for program in BIN.iterdir():
            (programs / program.name).symlink_to(program)
        # The agent looks for the worker next to its own program. A link would lead it to BIN, so
        # this is a copy.
        (programs / "lockstep").unlink()
        subprocess.run(["cp", BIN / "lockstep", programs / "lockstep"], check=True)
        job = self.job(self.small_data(), train=LONG, model={"name": "mlp"})
        run = self.start(job, "--workers", 2, program=programs / "lockstep")
        run.wait_for_workers(2)
        run.wait_for_step(5)
        (programs / "lockstep-worker").unlink()
        os.kill(run.worker(1), signal.SIGKILL)
        run.wait_for(lambda: "could not be started" in run.text(), "it was told")
        self.assert_event(run, "worker_not_started", names=programs / "lockstep-worker")
        run.wait_for_more_steps(5)
        run.process.send_signal(signal.SIGTERM)
        self.assertEqual(run.wait(), 75, run.text()[-2000:])


class LostCheckpoints(LockstepTest):
    def test_a_resume_says_which_checkpoints_are_lost_and_how_many_steps_it_goes_back(self):
        job = self.job(self.small_data(), model={"name": "mlp"}, checkpoint={"every_steps": 5},
                       train={"global_batch": 64, "slots": 4, "max_steps": 20})
        run = self.finish(job, "--workers", 2)
        newest = sorted((run.run_dir / "checkpoints").iterdir())[-1]
        shutil.rmtree(newest)
        again = self.finish(job, "--workers", 2, "--resume")
        self.assertIn(newest.name, again.text())
        self.assertIn("5 steps again", again.text())
        self.assert_event(again, "checkpoints_lost", names=[newest.name, run.run_dir])
        with contextlib.closing(sqlite3.connect(run.run_dir / "journal.db")) as journal:
            kinds = journal.execute("SELECT text FROM events WHERE kind = 'checkpoints_lost'")
            self.assertIn(newest.name, kinds.fetchone()[0])


class OtherDirectories(LockstepTest):
    def test_an_agent_without_the_run_s_directory_says_that_it_must_be_shared(self):
        empty = self.scratch / "empty"
        empty.mkdir()
        self.assert_fails(lockstep("agent", "--run-dir", empty, "--workers", 1), 66, names=empty,
                          advises="share")

    def test_a_rank_that_sees_nothing_of_rank_0_says_what_it_waits_for(self):
        job = self.job(self.small_data(), model={"name": "mlp"})
        run = self.start(job, "--workers", 1)
        self.assertEqual(run.wait(), 0, run.text()[-2000:])
        away = self.scratch / "away"
        away.mkdir()
        launch = {"LOCKSTEP_RANK": "1", "LOCKSTEP_WORLD_SIZE": "2", "LOCKSTEP_LAUNCH_ID": "here"}
        run.spawn([str(BIN / "lockstep"), "agent", str(job), "--run-dir", str(away)], away,
                  self.environment(launch))
        run.wait_for(lambda: "rank 1 of 2" in run.text() and str(away) in run.text() and
                     "shared" in run.text(), "the console says what it waits for")
        run.process.send_signal(signal.SIGTERM)
        self.assertEqual(run.wait(), 75, run.text()[-2000:])


if __name__ == "__main__":
    unittest.main()
