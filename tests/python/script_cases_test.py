"""Failures of training loops that users of public projects reported: the order of samples changes
with a resume, or with the number of workers; the global batch follows the number of workers; a run
throws away computed gradients when another worker dies."""
import unittest

from harness import scratch_directory
from script_runs import SCRIPTS, ScriptTest

TRAIN = SCRIPTS / "train.py"
STEPS = 110  # ten epochs of eleven steps
MLP = ["mlp", "fp32", 0]


class Cases(ScriptTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.shared = scratch_directory(cls.addClassCleanup)
        cls.whole = None

    def setUp(self):
        super().setUp()
        self.take_ms(20)

    def start_mlp(self, workers, name="run"):
        return self.start_script(TRAIN, [*MLP, self.pace], workers, name=name,
                                 overrides=[f"train.max_steps={STEPS}", "train.epochs=0"])

    def undisturbed(self):
        """The undisturbed run, which the class makes once."""
        cls = type(self)
        if cls.whole is None:
            cls.whole = self.start_mlp(1, name=self.shared / "undisturbed")
            self.assertEqual(cls.whole.wait(), 0, cls.whole.text()[-3000:])
        return cls.whole

    def assert_same_steps(self, run):
        """Checks that each step has the losses of the undisturbed run and, by the audit, its
        samples."""
        self.take_ms(0)
        self.assertEqual(run.wait(), 0, run.text()[-3000:])
        undisturbed = self.undisturbed()
        self.assertEqual([(row["step"], row["samples"], row["loss"]) for row in run.history()],
                         [(row["step"], row["samples"], row["loss"])
                          for row in undisturbed.history()])
        self.assert_same_result(run, undisturbed)

    def test_a_resume_goes_on_with_the_next_sample_of_the_epoch(self):
        run = self.start_mlp(2)
        run.wait_for_step(15)  # in the middle of the second epoch
        self.take_ms(300)
        self.stop(run)
        self.assertNotEqual(len(run.history()) % 11, 0, "not between two epochs")
        self.assert_nothing_left(run)
        rest = self.start("--resume", "--workers", 1)
        self.assert_same_steps(rest)
        self.assert_whole_log(rest)

    def test_a_resize_shuffles_nothing_and_the_global_batch_stays(self):
        run = self.start_mlp(1)
        run.wait_for_step(15)
        self.take_ages()
        self.succeed("scale", run.run_dir, 3)
        run.wait_for_workers(3)
        self.assert_same_steps(run)
        samples = {row["samples"] for row in run.history()}
        self.assertEqual(samples, {48, 20}, "500 samples are ten full steps and a rest")

    def test_who_survives_a_death_computes_the_step_in_flight_again_and_nothing_else(self):
        run = self.start_mlp(3)
        run.wait_for_step(15)
        before = len(run.history())
        self.take_ms(300)
        self.kill_and_go_on(run, 2)
        self.assert_same_steps(run)
        found = self.audit(run)
        first, second = found["generations"][:2]
        self.assertEqual(found["rolled_back"], [])
        self.assertGreaterEqual(first["last_step"], before)
        self.assertEqual(second["first_step"], first["last_step"] + 1)


if __name__ == "__main__":
    unittest.main()
