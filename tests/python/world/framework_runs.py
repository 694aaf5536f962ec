"""Runs of fit.py and hf.py, for tests with real processes."""
import json
import os
import re
import signal

from script_runs import SCRIPTS, ScriptTest

FIT, HF = SCRIPTS / "fit.py", SCRIPTS / "hf.py"


class FrameworkTest(ScriptTest):
    def setUp(self):
        super().setUp()
        self.take_ms(200)

    def alone_beside_a_plain_loop(self, script, *words, **sections):
        """The output of the script, and the findings of its plain loop."""
        plain = self.scratch / "plain.json"
        output = self.alone(script, *words, 0, plain, **sections)
        return output, json.loads(plain.read_text())

    def with_a_killed_worker(self, script, *words, overrides=()):
        """A run of two workers. The one that takes the place of a dead one gets all state by transfer."""
        run = self.start_script(script, [*words, self.pace], 2, overrides=overrides)
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
        """`last_line`: the line that every worker that sees the end prints, as the script alone
        does."""
        self.assertIn(f"weights_sha256 {run.summary()['weights_sha256']}", output)
        said = [line for line in output.splitlines() if line.startswith(last_line)]
        self.assertEqual(len(said), 1, output)
        for path in (run.run_dir / "logs").glob("worker-*.stderr"):
            self.assertIn(said[0], path.read_text(errors="replace"), path)

    def assert_evaluated(self, run, output, steps, other):
        """Checks that a worker's losses after the loop are those of the run's last evaluations: the
        first one and `other`."""
        rows = [json.loads(line) for line in
                (run.run_dir / "evals.jsonl").read_text().splitlines()]
        self.assertEqual([row["step"] for row in rows], steps)
        self.assertAlmostEqual(rows[-1]["loss"], float(re.search(r"held out (\d+\.\d+)", output)[1]),
                               delta=2e-5)
        self.assertAlmostEqual(rows[-1]["metrics"][f"{other}/loss"],
                               float(re.search(r"other (\d+\.\d+)", output)[1]), delta=2e-5)

    def logged(self, run):
        return [json.loads(line) for line in
                (run.run_dir / "script_log.jsonl").read_text().splitlines()]

    def assert_close(self, values, others):
        self.assertEqual(len(values), len(others))
        for value, other in zip(values, others):
            self.assertAlmostEqual(value, other, delta=1e-5 * abs(other))
