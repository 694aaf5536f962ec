"""What is known to go wrong with training loops elsewhere, each as it was reported of public projects:
the order of samples changes with a resume, or with the number of workers; the global batch follows the
number of workers; gradients that were computed are thrown away when somebody else dies."""
import os
import signal
import unittest

from script_runs import SCRIPTS, ScriptTest

TRAIN = SCRIPTS / "train.py"
STEPS = 110  # ten epochs of eleven steps
MLP = ["mlp", "fp32", 0]


class Cases(ScriptTest):
    def start_mlp(self, workers, delay=20, name="run"):
        self.take_ms(delay)
        return self.start_script(TRAIN, [*MLP, self.pace], workers, name=name,
                                 overrides=[f"train.max_steps={STEPS}", "train.epochs=0"])

    def undisturbed(self):
        run = self.start_mlp(1, delay=0, name="undisturbed")
        self.assertEqual(run.wait(), 0, run.text()[-3000:])
        return run

    def assert_same_steps(self, run, undisturbed):
        """Losses step by step; and, by the audit, the very samples of each."""
        self.assertEqual(run.wait(), 0, run.text()[-3000:])
        self.assertEqual([(row["step"], row["samples"], row["loss"]) for row in run.history()],
                         [(row["step"], row["samples"], row["loss"])
                          for row in undisturbed.history()])
        self.assert_same_result(run, undisturbed)

    def test_a_resume_goes_on_with_the_next_sample_of_the_epoch(self):
        run = self.start_mlp(2)
        run.wait_for_step(15)  # in the middle of the second epoch
        run.process.send_signal(signal.SIGINT)
        self.assertEqual(run.wait(), 75, run.text()[-3000:])
        self.assertNotEqual(len(run.history()) % 11, 0, "not between two epochs")
        rest = self.start("--resume", "--workers", 1)
        self.assert_same_steps(rest, self.undisturbed())

    def test_a_resize_shuffles_nothing_and_the_global_batch_stays(self):
        run = self.start_mlp(1)
        run.wait_for_step(15)
        self.take_ages()
        self.succeed("scale", run.run_dir, 3)
        run.wait_for_workers(3)
        self.take_ms(0)
        self.assert_same_steps(run, self.undisturbed())
        samples = {row["samples"] for row in run.history()}
        self.assertEqual(samples, {48, 20}, "500 samples are ten full steps and a rest")

    def test_who_survives_a_death_computes_the_step_in_flight_again_and_nothing_else(self):
        run = self.start_mlp(3)
        run.wait_for_step(15)
        before = len(run.history())
        os.kill(run.workers()[2], signal.SIGKILL)
        run.wait_for(lambda: run.status()["generation"] > 1, "the run went on without it")
        self.assert_same_steps(run, self.undisturbed())
        found = self.audit(run)
        first, second = found["generations"][:2]
        self.assertEqual(found["rolled_back"], [])
        self.assertGreaterEqual(first["last_step"], before)
        self.assertEqual(second["first_step"], first["last_step"] + 1)


if __name__ == "__main__":
    unittest.main()
