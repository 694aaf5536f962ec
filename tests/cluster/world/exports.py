"""Runs with an export of their history as event files."""
import json
import os
import pathlib
import signal
import subprocess

from event_files import scalars
from harness import BIN, DEADLINE_S, LockstepTest, lockstep


class ExportTest(LockstepTest):
    slot_ms = 5

    def export(self, run, *words):
        done = lockstep("export", "tensorboard", run.run_dir, *words, timeout=DEADLINE_S)
        self.assertEqual(done.returncode, 0, done.stderr)
        return pathlib.Path(done.stdout.strip())

    def finished_run(self):
        job = self.job(self.small_data(), model={"name": "mlp"},
                       train={"global_batch": 64, "slots": 4, "epochs": 5})
        return self.finish(job, "--workers", 2)

    def outlive_a_coordinator(self, run, follower):
        """The coordinator is away for longer than between two looks of the follower."""
        killed = run.coordinator()["pid"]
        os.kill(run.process.pid, signal.SIGSTOP)  # no new coordinator starts
        os.kill(killed, signal.SIGKILL)
        with self.assertRaises(subprocess.TimeoutExpired):
            follower.wait(5)
        os.kill(run.process.pid, signal.SIGCONT)
        run.wait_for(lambda: run.status()["term"] > 1, "another coordinator served")

    def followed_over_a_cut(self):
        """Exports a run while it goes on and while it goes back. Returns the directory of the event
        files, and the final history."""
        job = self.job(self.small_data(), model={"name": "mlp"},
                       train={"global_batch": 64, "slots": 4, "max_steps": 1_000_000_000},
                       optimizer={"name": "adamw", "lr": 0.0002}, checkpoint={"every_steps": 50})
        run = self.start(job, "--workers", 2)
        run.wait_for_workers(2)
        run.wait_for_more_steps(150)
        follower = subprocess.Popen([BIN / "lockstep", "export", "tensorboard", run.run_dir,
                                     "--follow"], stdout=subprocess.PIPE, text=True)
        self.addCleanup(follower.stdout.close)
        self.addCleanup(follower.wait)
        self.addCleanup(follower.kill)
        directory = pathlib.Path(follower.stdout.readline().strip())
        run.wait_for(lambda: max(scalars(directory)["train/loss"]) >= 150, "steps were told")
        self.outlive_a_coordinator(run, follower)
        # While it does not look, the history is cut and goes on otherwise, as a rollback does.
        follower.send_signal(signal.SIGSTOP)
        run.process.send_signal(signal.SIGTERM)
        self.assertEqual(run.wait(), 75)
        path = run.run_dir / "history.jsonl"
        rows = [json.loads(line) for line in path.read_text().splitlines()][:120]
        for row in rows[100:]:
            row["loss"] = 77.0
        path.write_text("".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows))
        follower.send_signal(signal.SIGCONT)
        self.assertEqual(follower.wait(DEADLINE_S), 0, "it ends with the run")
        self.assertEqual(len(list(directory.iterdir())), 2, "a new file takes the old one's place")
        return directory, rows
