"""run.epochs(): code between two epochs runs in every worker, once, after the evaluation. The
weights equal those that a plain loop of PyTorch finds, in every world, through a death, and through
resumes from the middle of an epoch and from its end."""
import json
import shutil
import unittest

from script_runs import SCRIPTS, ScriptTest

EPOCHS = SCRIPTS / "epochs.py"
STEPS, EPOCH = 20, 5


class Epochs(ScriptTest):
    weights = None  # of `python epochs.py` alone

    def setUp(self):
        super().setUp()
        self.take_ms(0)
        cls = type(self)
        if cls.weights is None:
            cls.alone_said = self.alone(EPOCHS, "plain")
            cls.weights = cls.alone_said.split("weights_sha256 ")[1][:64]

    def start_epochs(self, workers, name="run", **more):
        return self.start_script(EPOCHS, [self.pace], workers, name=name, **more)

    def assert_right(self, run):
        self.assertEqual(run.wait(), 0, run.text()[-3000:])
        self.assertEqual(run.summary()["weights_sha256"], self.weights)
        self.assertEqual(len(run.history()), STEPS)
        rows = [json.loads(line) for line in (run.run_dir / "script_log.jsonl").read_text().splitlines()]
        evals = [json.loads(line) for line in (run.run_dir / "evals.jsonl").read_text().splitlines()]
        self.assertEqual([(row["step"], row["edge"], row["epoch"], f"{row['evaluated']:.6g}") for row in rows],
                         [(row["step"], True, i, f"{row['loss']:.6g}") for i, row in enumerate(evals)])
        self.assertEqual(len(rows), STEPS // EPOCH)
        self.audit(run)

    def test_the_weights_are_those_of_a_plain_loop(self):
        self.assertIn("the plain loop has the same weights", self.alone_said)
        self.assertIn(f"behind the loop after {STEPS} steps and 4 epochs", self.alone_said)

    def test_every_world_has_them_and_a_worker_that_is_killed_changes_nothing(self):
        self.take_ms(150)
        run = self.start_epochs(3)
        run.wait_for_step(EPOCH - 1)
        self.take_ages()
        self.kill_and_go_on(run, 0)
        run.wait_for(lambda: len(run.workers()) == 3, "another had its place")
        self.take_ms(0)
        self.assert_right(run)

    def test_a_run_is_resumed_in_an_epoch_and_at_its_end(self):
        self.take_ms(100)
        run = self.start_epochs(1)
        run.wait_for_step(2 * EPOCH + 2)
        self.succeed("stop", run.run_dir)
        self.assertEqual(run.wait(), 75, run.text()[-3000:])
        self.take_ms(0)
        again = self.start_epochs(2, overrides=["--resume"])
        self.assert_right(again)
        # The replay goes from the state before an edge to the state after another one.
        told = self.replayed(run, STEPS)
        self.assertIn(f"computed from step-00000000{STEPS - EPOCH}", told)
        self.assertRegex(told, rf"the weights are those of step-00000000{STEPS}-\S+-edge,")
        # The last checkpoint is lost, so the run goes back to the checkpoint before an edge.
        [last] = (run.run_dir / "checkpoints").glob("step-*-edge")
        shutil.rmtree(last)
        back = self.start_epochs(1, overrides=["--resume"])
        self.assert_right(back)
        self.assertIn(f"starts after step {STEPS - EPOCH} of {STEPS}", back.coordinator_log())

    def test_a_script_ends_its_run_between_two_epochs(self):
        """Early stopping completes the run in every world."""
        text = EPOCHS.read_text().replace("    run.log(epoch", "    if epoch == 1: run.finish()\n    run.log(epoch")
        script = self.write_script(text)
        weights = self.alone(script).split("weights_sha256 ")[1][:64]
        run = self.start_script(script, workers=3, name="ended")
        self.assertEqual(run.wait(), 0, run.text()[-3000:])
        self.assertEqual((run.summary()["steps"], run.summary()["weights_sha256"]), (2 * EPOCH, weights))
        self.assertIn(f"behind the loop after {2 * EPOCH} steps and 2 epochs",
                      (run.run_dir / "logs/worker-0.stderr").read_text())

    def test_a_loop_over_epochs_that_is_left_is_refused(self):
        text = EPOCHS.read_text()
        for line in ("    if epoch == 1: break\n    run.log(epoch", "    if epoch == 1: sys.exit()\n    run.log(epoch"):
            script = self.write_script(text.replace("    run.log(epoch", line))
            self.assertIn("run.finish()", self.alone(script, expect=64))
        run = self.start_script(script, name="left")
        self.assertEqual(run.wait(), 64, run.text()[-3000:])
        self.assertIn("run.finish()", run.text())

    def test_what_fails_between_two_epochs_ends_the_run_with_the_traceback(self):
        text = EPOCHS.read_text()
        script = self.write_script(text.replace("    drawn = ", "    if epoch == 1: raise ArithmeticError('mine')\n"
                                                                "    drawn = "))
        run = self.start_script(script, name="failing")
        self.assertEqual(run.wait(), 64, run.text()[-3000:])
        self.assertIn("ArithmeticError: mine, in step 10", run.text())
        self.assertIn("between two epochs", run.text())


if __name__ == "__main__":
    unittest.main()
