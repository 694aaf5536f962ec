"""All processes were killed, and then the journal was damaged, lost or exchanged. A resume gives
the same bits, or ends with code 65 and names the checkpoints and the command that goes on. That
command gives the same bits.
"""
import json
import os
import random
import shutil
import signal
import sqlite3
import unittest

from harness import LockstepTest, Run, kill_at_once, lockstep, processes_of, scratch_directory, \
    synthetic_dataset

STEPS = 240
EVERY = 50
SECTIONS = {"model": {"name": "mlp", "dropout": 0.25},
            "train": {"global_batch": 64, "slots": 4, "max_steps": STEPS},
            "checkpoint": {"every_steps": EVERY, "keep": 3},
            "optimizer": {"name": "adamw", "lr": 0.0001},
            "cluster": {"rebalance": False}}


def checkpoints(run_dir):
    return sorted(path.name for path in (run_dir / "checkpoints").glob("step-*"))


class LostJournal(LockstepTest):
    """A run of two workers was killed once, after its third checkpoint. Each test damages a copy."""

    @classmethod
    def setUpClass(cls):
        cls.shared = scratch_directory(cls.addClassCleanup)
        cls.data = synthetic_dataset(cls.shared / "data", train=3000)

    def prepared(self):
        cls = type(self)
        if hasattr(cls, "killed"):
            return
        job = self.job(self.data, **SECTIONS)
        cls.whole = Run([job, "--workers", 1], self.shared / "whole")
        self.assertEqual(cls.whole.wait(), 0, cls.whole.text()[-3000:])
        run = Run([job, "--workers", 2], self.shared / "killed",
                  self.environment(slot_ms=20))
        run.wait_for(lambda: len(checkpoints(run.run_dir)) == 3, "three checkpoints were written")
        kill_at_once(processes_of(run.run_dir))
        self.assertEqual(run.wait(), -signal.SIGKILL, run.text()[-3000:])
        cls.killed = run.run_dir

    def damaged(self, damage, name="run"):
        self.prepared()
        run_dir = self.scratch / name
        shutil.copytree(self.killed, run_dir, symlinks=True)
        damage(run_dir)
        return run_dir

    def resume(self, run_dir, *more, env=None):
        run = Run(["--resume", *more], run_dir, self.environment(env))
        self.runs.append(run)
        run.wait()
        return run

    def assert_whole(self, run, most_unknown=0):
        """Checks the same bits, and every sample once. A lost journal may take with it the losses
        of some steps, which one rank had reported and another had not."""
        self.assertEqual(run.process.returncode, 0, run.text()[-3000:])
        self.assertEqual(run.summary()["weights_sha256"], self.whole.summary()["weights_sha256"])
        self.audit(run)
        ours, whole = run.history(), self.whole.history()
        unknown = [line["step"] for line in ours if line["loss"] is None]
        self.assertLessEqual(len(unknown), most_unknown)
        self.assertEqual([(line["step"], line["samples"], line["loss"]) for line in ours
                          if line["loss"] is not None],
                         [(line["step"], line["samples"], line["loss"]) for line in whole
                          if line["step"] not in unknown])
        self.assertEqual(len(ours), len(whole))

    def assert_refused_and_mended(self, run):
        """Checks that the refusal names all checkpoints, and that its command goes on from the
        newest with the same bits."""
        before = checkpoints(run.run_dir)
        self.assert_fails(run, 65, names=before, advises=["--from-checkpoint", "--run-dir"])
        self.assertEqual(checkpoints(run.run_dir), before, "a refusal changes nothing")
        had_one = (run.run_dir / "journal.db").exists()
        audited = lockstep("audit", run.run_dir)
        self.assertNotEqual(audited.returncode, 0, audited.stdout)
        again = self.resume(run.run_dir, "--from-checkpoint", before[-1])
        self.assert_whole(again, most_unknown=100)
        self.assertNotEqual(again.summary()["lineage"], self.lineage())
        if had_one:
            self.assertTrue(list(run.run_dir.glob("journal*.lost-*")), "the old one is kept")

    def lineage(self):
        manifest = self.killed / "checkpoints" / checkpoints(self.killed)[-1] / "manifest.json"
        return json.loads(manifest.read_text())["lineage"]["id"]

    def test_without_damage_it_goes_on_by_itself(self):
        run = self.resume(self.damaged(lambda run_dir: None))
        self.assert_whole(run)
        self.assertEqual(run.summary()["lineage"], self.lineage())

    def test_every_flipped_bit_of_the_log_is_harmless_or_known(self):
        self.prepared()
        log = self.killed / "journal.db-wal"
        size = log.stat().st_size
        rng = random.Random(9)
        places = [0, 16, 24, 32, 40, 56, size - 1] + [rng.randrange(size) for _ in range(33)]
        outcomes = set()
        for number, place in enumerate(places):
            with self.subTest(byte=place):
                def flip(run_dir):
                    content = bytearray((run_dir / "journal.db-wal").read_bytes())
                    content[place] ^= 1 << rng.randrange(8)
                    (run_dir / "journal.db-wal").write_bytes(content)
                run_dir = self.damaged(flip, f"flip-{number}")
                run = self.resume(run_dir, "train.max_steps=1", env=self.environment())
                # 64: whole, and it has done more than one step.
                code = run.process.returncode
                outcomes.add(code)
                self.assertIn(code, (64, 65), run.text()[-2000:])
                if code == 65:
                    self.assert_fails(run, 65, names=checkpoints(run_dir),
                                      advises="--from-checkpoint")
                shutil.rmtree(run_dir)
        self.assertIn(65, outcomes)

    def test_a_flipped_bit_is_known_and_mended(self):
        def flip(run_dir):
            log = run_dir / "journal.db-wal"
            content = bytearray(log.read_bytes())
            content[len(content) // 2] ^= 4
            log.write_bytes(content)
        self.assert_refused_and_mended(self.resume(self.damaged(flip)))

    def test_an_empty_journal_is_known_and_mended(self):
        def empty(run_dir):
            for name in ("journal.db", "journal.db-wal"):
                os.truncate(run_dir / name, 0)
        self.assert_refused_and_mended(self.resume(self.damaged(empty)))

    def test_a_deleted_journal_is_known_and_mended_even_without_history(self):
        def delete(run_dir):
            for path in [*run_dir.glob("journal*"), run_dir / "history.jsonl"]:
                path.unlink()
        run = self.resume(self.damaged(delete))
        newest = checkpoints(run.run_dir)[-1]
        self.assert_fails(run, 65, names=checkpoints(run.run_dir), advises="--from-checkpoint")
        again = self.resume(run.run_dir, "--from-checkpoint", newest)
        self.assertEqual(again.process.returncode, 0, again.text()[-3000:])
        self.assertEqual(again.summary()["weights_sha256"], self.whole.summary()["weights_sha256"])
        steps = self.audit(again)["steps"]
        self.assertEqual((steps, len(again.history())), (STEPS, STEPS))

    def test_a_log_that_is_cut_at_a_commit_is_known(self):
        """The rest is a whole journal, only an older one."""
        def cut(run_dir):
            log = run_dir / "journal.db-wal"
            os.truncate(log, log.stat().st_size * 2 // 3)
        self.assert_refused_and_mended(self.resume(self.damaged(cut)))

    def test_an_older_journal_beside_newer_checkpoints_is_known_without_its_head(self):
        """A backup restores such a journal."""
        def restore(run_dir):
            log = run_dir / "journal.db-wal"
            os.truncate(log, log.stat().st_size // 3)
            (run_dir / "journal.head").unlink()
        self.assert_refused_and_mended(self.resume(self.damaged(restore)))

    def test_damage_of_the_file_itself_is_known(self):
        def overwrite(run_dir):
            audited = lockstep("audit", run_dir)  # reads it, and changes nothing
            self.assertEqual(audited.returncode, 0, audited.stderr)
            with sqlite3.connect(run_dir / "journal.db") as journal:
                journal.execute("UPDATE steps SET loss = loss * 1.5 WHERE step = 60")
            journal.close()
        self.assert_refused_and_mended(self.resume(self.damaged(overwrite)))

    def test_a_second_lineage_never_goes_on_from_the_first_ones_checkpoint(self):
        first = self.scratch / "first"
        def lose(run_dir):
            for path in run_dir.glob("journal*"):
                path.unlink()
            (run_dir / "checkpoints").rename(first)
            (run_dir / "checkpoints").mkdir()
        run_dir = self.damaged(lose)
        # It writes none of its own, which could have the name of one of the first lineage's.
        second = Run(["--resume", "optimizer.lr=0.01", "checkpoint.every_steps=1000000"], run_dir,
                     self.environment(slot_ms=5))
        self.runs.append(second)
        second.wait_for(lambda: second.status()["step"] >= 20, "it trained anew")
        kill_at_once(processes_of(run_dir))
        second.wait()
        for path in first.iterdir():
            path.rename(run_dir / "checkpoints" / path.name)
        run = self.resume(run_dir)
        newest = checkpoints(run_dir)[-1]
        self.assert_fails(run, 65, names=[newest, self.lineage()], advises="--from-checkpoint")

    def test_a_run_without_checkpoints_begins_anew_and_says_so(self):
        def lose(run_dir):
            for path in run_dir.glob("journal.db*"):
                path.unlink()
            shutil.rmtree(run_dir / "checkpoints")
        run = self.resume(self.damaged(lose))
        self.assertIn("anew", run.text())
        self.assert_whole(run)

    def test_a_checkpoint_that_is_not_there_or_damaged_is_refused(self):
        def lose(run_dir):
            for path in run_dir.glob("journal*"):
                path.unlink()
            newest = run_dir / "checkpoints" / checkpoints(run_dir)[-1] / "model.safetensors"
            newest.write_bytes(newest.read_bytes()[:-1] + b"x")
        run_dir = self.damaged(lose)
        names = checkpoints(run_dir)
        self.assert_fails(self.resume(run_dir, "--from-checkpoint", "step-0000000007-g1-m1"), 66,
                          names=names)
        self.assert_fails(self.resume(run_dir, "--from-checkpoint", names[-1]), 65, names=names[-1])
        self.assert_whole(self.resume(run_dir, "--from-checkpoint", names[0]), most_unknown=100)

    def test_a_whole_journal_is_not_thrown_away(self):
        run_dir = self.damaged(lambda run_dir: None)
        run = self.resume(run_dir, "--from-checkpoint", checkpoints(run_dir)[0])
        self.assert_fails(run, 64, names=run_dir, advises="resume")

    def test_a_lost_or_cut_job_is_taken_from_the_journal(self):
        for what, damage in (("lost", lambda path: path.unlink()),
                             ("cut", lambda path: os.truncate(path, 3)),
                             ("empty", lambda path: os.truncate(path, 0))):
            with self.subTest(what):
                def damage_both(run_dir):
                    damage(run_dir / "job.pb")
                    damage(run_dir / "facts.pb")
                run = self.resume(self.damaged(damage_both, what))
                self.assert_whole(run)

    def test_a_lost_job_and_a_lost_journal_are_made_from_job_yaml_and_a_checkpoint(self):
        def lose(run_dir):
            for path in [*run_dir.glob("journal*"), run_dir / "job.pb"]:
                path.unlink()
        self.assert_refused_and_mended(self.resume(self.damaged(lose)))


if __name__ == "__main__":
    unittest.main()
