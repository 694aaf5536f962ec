"""A LightningModule and Hugging Face's Trainer are script loops, too: the losses and weights of the
framework's own loop over the same slots, and the same bits for two workers of which one is killed."""
import json
import os
import re
import signal
import unittest

from script_runs import SCRIPTS, ScriptTest

FIT, HF = SCRIPTS / "fit.py", SCRIPTS / "hf.py"


class Frameworks(ScriptTest):
    def setUp(self):
        super().setUp()
        self.take_ms(200)

    def alone_beside_a_plain_loop(self, script, *words):
        """What the script prints, and what its plain loop found."""
        plain = self.scratch / "plain.json"
        output = self.alone(script, *words, 0, plain)
        return output, json.loads(plain.read_text())

    def with_a_killed_worker(self, script, *words):
        """A run of two workers. The one that takes the place of a dead one gets all state by transfer."""
        run = self.start_script(script, [*words, self.pace], 2)
        run.wait_for_step(2)
        victim = run.worker(1)
        self.take_ages()
        os.kill(victim, signal.SIGKILL)
        run.wait_for(lambda: victim not in run.workers() and len(run.workers()) == 2
                     and run.status()["generation"] > 2, "another had its place")
        self.take_ms(0)
        self.assertEqual(run.wait(), 0, run.text()[-3000:])
        self.audit(run)
        return run

    def assert_same(self, run, output, last_line):
        """`last_line`: what every worker that sees the end prints, as who is alone does."""
        self.assertIn(f"weights_sha256 {run.summary()['weights_sha256']}", output)
        said = [line for line in output.splitlines() if line.startswith(last_line)]
        self.assertEqual(len(said), 1, output)
        for path in (run.run_dir / "logs").glob("worker-*.stderr"):
            self.assertIn(said[0], path.read_text(errors="replace"), path)

    def assert_evaluated(self, run, output, steps):
        """What a worker computes behind the loop is the loss of the run's last evaluation."""
        rows = [json.loads(line) for line in
                (run.run_dir / "evals.jsonl").read_text().splitlines()]
        self.assertEqual([row["step"] for row in rows], steps)
        self.assertAlmostEqual(rows[-1]["loss"], float(re.search(r"held out (\S+)", output)[1]),
                               delta=2e-5)

    def logged(self, run):
        return [json.loads(line) for line in
                (run.run_dir / "script_log.jsonl").read_text().splitlines()]

    def assert_close(self, values, others):
        self.assertEqual(len(values), len(others))
        for value, other in zip(values, others):
            self.assertAlmostEqual(value, other, delta=1e-5 * abs(other))

    def test_lightning(self):
        output, found = self.alone_beside_a_plain_loop(FIT, "duck")
        self.assert_close(found["fit"], found["plain"])
        self.assertLess(found["weights"], 1e-5)
        run = self.with_a_killed_worker(FIT, "lightning")
        self.assert_same(run, output, "behind fit after 15 steps")
        self.assert_close([row["loss"] for row in run.history()], found["plain"])
        self.assertTrue(all(0 <= row["metrics"]["accuracy"] <= 1 for row in run.history()))
        self.assert_evaluated(run, output, [5, 10, 15])
        clipped = [row["step"] for row in self.logged(run) if row["norm"] > 0.5]
        self.assertIn(f"{len(clipped)} clipped", output)

    def test_hugging_face(self):
        output, found = self.alone_beside_a_plain_loop(HF)
        self.assert_close(found["train"], found["plain"])
        self.assertEqual(*found["rates"])
        reports = (self.scratch / "report.txt").read_text()
        self.assertEqual(reports.splitlines(),
                         [f"{step + 1} {rate}" for step, rate in enumerate(found["rates"][0])])
        self.assertLess(found["weights"], 1e-4)
        run = self.with_a_killed_worker(HF)
        self.assert_close([row["loss"] for row in run.history()], found["plain"])
        self.assert_same(run, output, "behind train after 8 steps")
        self.assert_evaluated(run, output, [4, 8])
        self.assertEqual([row["learning_rate"] for row in self.logged(run)], found["rates"][0])

    def test_hugging_face_ends_early_as_complete(self):
        seen = "self.events.append(state.global_step)"
        script = self.write_script(HF.read_text().replace(
            seen, f"{seen}\n        control.should_training_stop = state.global_step == 3", 1))
        output = self.alone(script, 0)
        self.take_ms(0)
        run = self.start_script(script, [self.pace], 2)
        self.assertEqual(run.wait(), 0, run.text()[-3000:])
        self.assertEqual(run.summary()["steps"], 3)
        self.assert_same(run, output, "behind train after 3 steps")


if __name__ == "__main__":
    unittest.main()
