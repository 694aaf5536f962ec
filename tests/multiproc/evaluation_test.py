"""Evaluations: none is lost with a worker, whatever it was about to say."""
import contextlib
import json
import os
import signal
import sqlite3
import unittest

from disturbed import DisturbedTest
from harness import BIN, LockstepTest, kill_at_once, lockstep, processes_of, synthetic_dataset

MUTE = BIN.parent / "tests" / "liblockstep_mute.so"
EPOCH = 47  # 3,000 samples in batches of 64


def evaluations(run):
    """(step, right predictions, loss) of the surviving lineage, as the journal has them."""
    with contextlib.closing(sqlite3.connect(run.run_dir / "journal.db")) as journal:
        return journal.execute("SELECT step, correct, loss FROM evals WHERE rolled_back = 0 "
                               "ORDER BY step").fetchall()


class LostWithItsWriter(DisturbedTest):
    """The writer's last words do not arrive: it is mute, and then it dies."""
    train = {"global_batch": 64, "slots": 4, "max_steps": 4 * EPOCH}

    def start_run_with_mute_writer(self):
        # A mute worker is silent, and the long lease does not judge it before the test does.
        job = self.job_of()
        muted = self.scratch / "muted"
        env = self.environment()
        env |= {"LD_PRELOAD": f"{env['LD_PRELOAD']}:{MUTE}", "LOCKSTEP_TEST_MUTED": str(muted)}
        run = self.start(job, "--workers", 3, env=env, slot_ms=0)
        run.wait_for_step(EPOCH + 5)
        writer = run.worker(0)
        muted.with_suffix(".new").write_text(str(writer))
        muted.with_suffix(".new").rename(muted)
        return run, writer

    def assert_nothing_is_lost(self, run, writer):
        os.kill(writer, signal.SIGKILL)
        self.assert_as_if_nothing_had_happened(run)
        self.assertEqual([step for step, _, _ in evaluations(run)],
                         [EPOCH, 2 * EPOCH, 3 * EPOCH, 4 * EPOCH])
        self.assertEqual(evaluations(run), evaluations(self.undisturbed))

    def test_in_the_middle_of_the_run(self):
        run, writer = self.start_run_with_mute_writer()
        run.wait_for(lambda: min(m["step"] for m in run.status()["members"] if m["rank"] > 0)
                     > 2 * EPOCH, "the others had gone on after the evaluation")
        self.assert_nothing_is_lost(run, writer)

    def test_at_the_end_of_the_run(self):
        run, writer = self.start_run_with_mute_writer()
        run.wait_for(lambda: all(m["state"] == "left" for m in run.status()["members"]
                                 if m["rank"] > 0), "the others were done")
        self.assert_nothing_is_lost(run, writer)


def lines(run):
    return [json.loads(line) for line in (run.run_dir / "evals.jsonl").read_text().splitlines()]


class Curve(LockstepTest):
    """12 classes, 10 steps an epoch."""

    def job_of(self, every=4, **train):
        data = self.scratch / "data"
        if not data.exists():
            synthetic_dataset(data, classes=12)
        return self.job(data, model={"name": "mlp"}, eval={"every_steps": every},
                        train={"global_batch": 64, "slots": 4, "epochs": 2, **train},
                        schedule={"name": "cosine"}, checkpoint={"every_steps": 5})

    def assert_is_curve_of(self, run):
        found = lines(run)
        history = {row["step"]: row for row in run.history()}
        self.assertEqual([row["step"] for row in found], [4, 8, 10, 12, 16, 20])
        for row, (step, correct, loss) in zip(found, evaluations(run), strict=True):
            self.assertEqual((row["step"], row["correct"], row["samples"]), (step, correct, 100))
            self.assertAlmostEqual(row["loss"], loss, places=6)
            self.assertAlmostEqual(row["accuracy"], correct / 100)
            self.assertEqual(row["epoch"], history[step]["epoch"])
            self.assertEqual(row["lr"], history[step]["lr"])
            self.assertGreaterEqual(row["top5"], row["accuracy"])
            self.assertLessEqual(row["top5"], 1)
            self.assertNotIn("perplexity", row)

    def test_has_a_point_every_so_many_steps_the_same_in_every_world(self):
        one = self.finish(self.job_of(), "--workers", 1, name="one")
        three = self.finish(self.job_of(), "--workers", 3, name="three")
        self.assert_is_curve_of(one)
        self.assertEqual(lines(three), lines(one))
        plain = self.finish(self.job_of(every=0), "--workers", 2, name="plain")
        self.assertEqual([row["step"] for row in lines(plain)], [10, 20])
        self.assertEqual(plain.summary()["weights_sha256"], one.summary()["weights_sha256"])
        self.assertEqual(one.summary()["eval_top5"], lines(one)[-1]["top5"])
        self.assertIn("top 5", one.text())

    def test_is_cut_where_the_run_goes_back_and_written_anew_where_it_was_damaged(self):
        whole = self.finish(self.job_of(), "--workers", 1, name="whole")
        run = self.start(self.job_of(), "--workers", 2, slot_ms=60)
        run.wait_for(lambda: len(lines(run)) >= 4, "four evaluations")
        kill_at_once(processes_of(run.run_dir))
        run.wait()
        with open(run.run_dir / "evals.jsonl", "a") as file:
            file.write("what a crash left")
        self.finish(self.job_of(), "--resume", "--workers", 3)
        self.assertEqual(lines(run), lines(whole))

    def test_a_run_with_a_journal_of_a_version_before_goes_on(self):
        """4: without a table for what evaluations have more than loss and right predictions. 5:
        without one for metrics of steps. 6: without summaries of steps."""
        whole = self.finish(self.job_of(every=0), "--workers", 1, name="whole")
        for version in (4, 5, 6):
            with self.subTest(version=version):
                self.assert_goes_on(whole, version)

    def assert_goes_on(self, whole, version):
        name = f"of-version-{version}"
        # Slow steps: it has to stop before the evaluation after step 10.
        run = self.start(self.job_of(every=0), "--workers", 2, slot_ms=1000, name=name)
        run.wait_for_step(2)
        run.process.send_signal(signal.SIGTERM)
        self.assertEqual(run.wait(), 75, run.text())
        with contextlib.closing(sqlite3.connect(run.run_dir / "journal.db")) as journal:
            self.assertEqual(journal.execute("SELECT count(*) FROM eval_reports").fetchone(), (0,))
            journal.execute("DROP TABLE step_pieces")
            if version < 6:
                journal.execute("DROP TABLE step_reports")
            if version < 5:
                journal.execute("DROP TABLE eval_reports")
            journal.execute(f"PRAGMA user_version = {version}")
        code, text = self.outcome("status", run.run_dir)
        self.assertEqual(code, 3, "a run that was stopped is shown: " + text)
        self.succeed("audit", run.run_dir)
        with contextlib.closing(sqlite3.connect(run.run_dir / "journal.db")) as journal:
            self.assertEqual(journal.execute("PRAGMA user_version").fetchone(), (version,))
        rest = self.finish(self.job_of(every=0), "--resume", "--workers", 2, name=name)
        self.assert_event(rest, "journal_upgraded", names=["journal.db"])
        self.assert_same_result(rest, whole)
        self.assertEqual(lines(rest), lines(whole))


def checkpoints(run):
    return {int(path.name.split("-")[1]): path.name
            for path in (run.run_dir / "checkpoints").iterdir()}


class Best(LockstepTest):
    def job_of(self, best="loss", patience=0, turns=False, **train):
        """`turns`: changes the labels of the evaluation data, so that evaluations get worse and
        worse."""
        data = self.scratch / "data"
        if not data.exists():
            synthetic_dataset(data)
            labels = data / "t10k-labels-idx1-ubyte"
            if turns:
                content = labels.read_bytes()
                labels.write_bytes(content[:8] + bytes((label + 1) % 4 for label in content[8:]))
        return self.job(data, model={"name": "mlp"}, eval={"every_steps": 2},
                        optimizer={"name": "sgd", "lr": 0.02},
                        schedule={"name": "cosine", "warmup_steps": 30},
                        train={"global_batch": 64, "slots": 4, "epochs": 3,
                               "patience": patience, **train},
                        checkpoint={"every_steps": 7, "best": best})

    def best_of(self, run, best="loss", until=None):
        rows = [row for row in lines(run) if until is None or row["step"] <= until]
        sign = 1 if best == "loss" else -1
        return min(rows, key=lambda row: (sign * row[best], row["step"]))

    def test_is_kept_beside_the_newest_and_shown(self):
        run = self.finish(self.job_of(best="accuracy", epochs=6), "--workers", 2)
        best = self.best_of(run, "accuracy")
        summary = run.summary()["best_checkpoint"]
        self.assertEqual(summary["step"], best["step"])
        self.assertEqual(summary["name"], checkpoints(run)[best["step"]])
        # Two each: the newest, and the newest before the last agreement (step 32, until the one at the
        # end) and before the last step of which all have told, each time with the best one until then.
        self.assertLessEqual(len(checkpoints(run)), 9)
        self.assertNotIn(7, checkpoints(run))
        listed = self.succeed("ckpt", "ls", run.run_dir)
        marked = [line for line in listed.splitlines() if "best:" in line]
        self.assertEqual(len(marked), 1, listed)
        self.assertIn(summary["name"], marked[0])
        plain = self.finish(self.job_of(best="none", epochs=6), "--workers", 2, name="plain")
        kept = set(checkpoints(plain))
        self.assertLessEqual({56, 60}, kept)
        self.assertLessEqual(kept, {21, 28, 35, 42, 49, 56, 60})
        self.assertNotIn("best_checkpoint", plain.summary())
        self.assertEqual(plain.summary()["weights_sha256"], run.summary()["weights_sha256"])

    def test_a_run_goes_back_to_it(self):
        run = self.finish(self.job_of(turns=True), "--workers", 2)
        before = lines(run)
        best = self.best_of(run)
        self.assertLess(best["step"], 10)
        name = checkpoints(run)[best["step"]]
        rest = self.finish(self.job_of(turns=True), "--resume", "--from-checkpoint", "best",
                           "--workers", 1)
        self.assertIn(name, rest.text())
        self.assertIn(f"after step {best['step']} of", rest.coordinator_log())
        self.assertEqual(lines(rest), before, "the same steps lead to the same results")
        self.assertEqual(rest.summary()["best_checkpoint"]["name"], name)
        self.audit(rest)

    def test_where_there_is_none_that_is_said(self):
        run = self.finish(self.job_of(best="none"), "--workers", 1)
        words = ("run", "--resume", "--run-dir", run.run_dir, "--from-checkpoint", "best")
        self.assert_fails(lockstep(*words), 64, names="checkpoint.best is none",
                          advises="checkpoint.best=loss")
        (run.run_dir / "journal.db").unlink()
        self.assert_fails(lockstep(*words, "checkpoint.best=loss"), 65, says="lost")

    def test_patience_ends_the_run_at_the_same_step_in_every_world(self):
        one = self.finish(self.job_of(patience=2, epochs=30), "--workers", 1, name="one")
        end = one.summary()["steps"]
        self.assertLess(end, 300)
        self.assertEqual(lines(one)[-1]["step"], end)
        rows = lines(one)
        best = self.best_of(one)
        self.assertEqual(len(rows) - 1 - rows.index(best), 2)
        self.assertIn("train.patience", one.summary()["message"])
        run = self.start(self.job_of(patience=2, epochs=30), "--workers", 3, name="three",
                         slot_ms=15)
        run.wait_for_step(3)
        os.kill(run.worker(0), signal.SIGKILL)  # another one joins
        self.assertEqual(run.wait(), 0, run.text()[-3000:])
        self.assert_same_result(run, one)
        self.assertEqual(lines(run), rows)
        self.assertIn("train.patience=4", run.text())  # how it goes on
        done = self.finish(self.job_of(patience=2, epochs=30), "--resume", name="three")
        self.assertEqual(done.summary()["steps"], end)
        self.assertIn("train.patience is 2", done.text())
        more = self.finish(self.job_of(patience=5, epochs=30), "--resume", name="three")
        self.assertGreater(more.summary()["steps"], end)
        self.audit(more)


if __name__ == "__main__":
    unittest.main()
