"""Evaluations by functions of a script, and run.last, which knows them and the steps: the same
bits in every world and through the death of the writer; the best checkpoint, the end by patience,
and a way back to the best."""
import json
import os
import re
import signal
import unittest

from script_runs import SCRIPTS, ScriptTest

EVALUATED = SCRIPTS / "evaluated.py"
DUE = [3, 5, 6, 9, 10, 12, 15]  # every third step, and the ends of epochs of five; the best at 9
SAMPLES, OTHER_SAMPLES = 64, 30
METRICS = ["drawn", "other/loss", "other/accuracy", "other/drawn", "other/mean"]
# The next step's rates. They fall after each epoch, and after an evaluation worse than one before.
RATES = [0.01, 0.009, 0.009, 0.009, 0.0081, 0.00405, 0.0018225]


class Evaluations(ScriptTest):
    def rows_of(self, run):
        return [json.loads(line) for line in (run.run_dir / "evals.jsonl").read_text().splitlines()]

    def logged(self, run):
        return [json.loads(line) for line in
                (run.run_dir / "script_log.jsonl").read_text().splitlines()]

    def start_evaluated(self, *words, workers, name):
        script = self.write_script(EVALUATED.read_text(), f"{name}.py")
        return self.start_script(script, words, workers, name=name)

    def kill_the_writer(self, run):
        run.wait_for_step(4)
        generation = run.status()["generation"]
        os.kill(run.worker(0), signal.SIGKILL)
        run.wait_for(lambda: run.status()["generation"] > generation, "the run went on without it")
        self.take_ms(0)

    def test_every_world_has_the_same_evaluations_and_end(self):
        self.take_ms(1000)
        disturbed = self.start_evaluated(0, self.pace, workers=3, name="three")
        self.kill_the_writer(disturbed)
        alone = self.alone(EVALUATED, 0)  # meanwhile
        steady = self.start_evaluated(1, workers=1, name="one")
        for run in (steady, disturbed):
            self.assertEqual(run.wait(), 0, run.text()[-3000:])
            self.assertIn("behind the loop after 15 steps", self.log_of(run))
            self.assert_logged_what_the_run_recorded(run)
        self.assertEqual(*[(run.run_dir / "evals.jsonl").read_text() for run in (steady, disturbed)])
        self.assertEqual(*map(self.logged, (steady, disturbed)))
        rows = self.rows_of(steady)
        self.assertEqual([row["step"] for row in rows], DUE)
        self.assertEqual({(row["samples"], *row["metrics"]) for row in rows}, {(SAMPLES, *METRICS)})
        drawn = {(row["metrics"]["drawn"], row["metrics"]["other/drawn"]) for row in rows}
        self.assertEqual(len(drawn), 1, "the seeds are the batch's")
        self.assertEqual(len(set(drawn.pop())), 2, "and the evaluation's")
        self.assertEqual([row["metrics"]["other/loss"] for row in rows], [100 - step for step in DUE])
        for row in rows:
            right = row["metrics"]["other/accuracy"] * OTHER_SAMPLES
            self.assertAlmostEqual(right, round(right), 5)
            self.assertNotEqual(row["metrics"]["other/mean"], 0)
        self.assertEqual([(row["epoch"], round(row["lr"], 10)) for row in rows],
                         [((step - 1) // 5, rate) for step, rate in zip(DUE, RATES)])
        self.assert_told_alone(alone, steady, rows)
        self.assert_told_in_the_summary(steady.summary(), rows[-1])
        self.assertEqual(steady.summary()["weights_sha256"], disturbed.summary()["weights_sha256"])
        self.refuse_other_data()
        self.go_back_to_the_best(disturbed, rows, self.logged(steady))
        self.assertIn("gave the recorded losses again", self.replayed(steady, 15))

    def assert_logged_what_the_run_recorded(self, run):
        logged, history = self.logged(run), run.history()
        shown = "{:.9g}".format  # as history.jsonl does
        self.assertEqual([(row["step"], shown(row["loss"]), shown(row["mean"])) for row in logged],
                         [(row["step"], shown(row["loss"]), shown(row["metrics"]["mean"]))
                          for row in history])
        self.assertEqual([row.get("before") for row in logged[1:]], [row["loss"] for row in logged[:-1]])
        self.assertEqual([(row["step"] - 1, shown(row["evaluated"]), row["accuracy"])
                          for row in logged if "evaluated" in row],
                         [(row["step"], shown(row["loss"]), row["accuracy"])
                          for row in self.rows_of(run)[:-1]])

    def assert_told_alone(self, alone, run, rows):
        told = re.findall(r"evaluation after step (\d+): loss (\S+), accuracy (\S+), drawn", alone)
        self.assertEqual([(int(step), float(loss), float(right)) for step, loss, right in told],
                         [(row["step"], round(row["loss"], 6), round(row["accuracy"], 6))
                          for row in rows])
        told = re.findall(r"after step (\d+): .*, other/loss (\S+), other/accuracy (\S+),", alone)
        self.assertEqual([(int(step), float(loss), float(right)) for step, loss, right in told],
                         [(row["step"], row["metrics"]["other/loss"],
                           round(row["metrics"]["other/accuracy"], 6)) for row in rows])
        self.assertIn(f"weights_sha256 {run.summary()['weights_sha256']}", alone)

    def assert_told_in_the_summary(self, summary, row):
        self.assertEqual(summary["eval_step"], row["step"])
        self.assertAlmostEqual(summary["eval_loss"], row["loss"], 6)  # of fewer digits
        self.assertAlmostEqual(summary["eval_metrics"]["drawn"], row["metrics"]["drawn"], 6)
        self.assertIn("step-0000000009", summary["best_checkpoint"]["name"])

    def refuse_other_data(self):
        """A resume with more samples in the second evaluation's data."""
        script = self.scratch / "three.py"
        right = script.read_text()
        script.write_text(right.replace("Points(30, 5)", "Points(31, 5)"))
        rest = self.start("--resume", "--workers", 1, "--from-checkpoint", "best", "train.patience=0",
                          name="three")
        self.assertEqual(rest.wait(), 64, rest.text()[-3000:])
        self.assertIn("evaluation other", rest.text())
        script.write_text(right)

    def go_back_to_the_best(self, run, rows, logged):
        rest = self.start("--resume", "--workers", 1, "--from-checkpoint", "best", "train.patience=0",
                          "train.max_steps=17", name="three")
        self.assertEqual(rest.wait(), 0, rest.text()[-3000:])
        self.assertEqual(self.rows_of(rest)[:len(DUE)], rows)
        self.assertEqual([row["step"] for row in self.rows_of(rest)], [*DUE, 17])
        self.assertEqual(self.logged(rest)[:15], logged)
        self.assertEqual([row["step"] for row in self.logged(rest)], [*range(1, 18)])
        self.audit(rest)


if __name__ == "__main__":
    unittest.main()
