"""The third promise for a training loop in Python: whatever dies, the run goes on, and ends with the
weights of an undisturbed one."""
import os
import signal
import unittest

from script_runs import SCRIPTS, ScriptTest, children_of

TRAIN = SCRIPTS / "train.py"
CNN = ["cnn", "fp32", 1]  # with a data process
STEPS = 150


class Recovery(ScriptTest):
    weights = None  # of `python train.py` alone

    def setUp(self):
        super().setUp()
        self.take_ms(60)

    def start_disturbed(self, workers):
        run = self.start_script(TRAIN, [*CNN, self.pace], workers,
                                overrides=[f"train.max_steps={STEPS}", "train.epochs=0"])
        run.wait_for_step(10)
        return run

    def assert_as_if_nothing_had_happened(self, run):
        self.take_ms(0)
        self.assertEqual(run.wait(), 0, run.text()[-3000:])
        self.assert_nothing_left(run)
        cls = type(self)
        cls.weights = cls.weights or self.weights_alone(TRAIN, *CNN, TRAIN__MAX_STEPS=str(STEPS),
                                                        TRAIN__EPOCHS="0")
        self.assertEqual(run.summary()["weights_sha256"], cls.weights)
        self.assertEqual(len(run.history()), STEPS)
        self.audit(run)
        self.assert_whole_log(run)

    def test_a_killed_writer_is_replaced_and_the_others_keep_their_interpreters(self):
        run = self.start_disturbed(3)
        victim, stays = run.worker(0), run.worker(1)
        self.take_ages()
        os.kill(victim, signal.SIGKILL)
        run.wait_for(lambda: victim not in run.workers() and run.status()["generation"] > 1,
                     "the run went on without it")
        self.assertIn(stays, run.workers())
        run.wait_for(lambda: len(run.workers()) == 3, "another had its place")
        self.assert_as_if_nothing_had_happened(run)
        self.assertEqual(self.log_of(run).count("writer since step"), 2, "each process once")

    def test_data_processes_and_their_zygote_are_killed(self):
        run = self.start_disturbed(2)
        worker = run.worker(0)
        zygote = children_of(run.run_dir, worker)[0]
        data_process = run.wait_for(lambda: children_of(run.run_dir, zygote)[0], "a data process")
        os.kill(data_process, signal.SIGKILL)
        run.wait_for_more_steps(10)
        self.assertEqual(run.status()["generation"], 1, "a dead data process costs no step")
        os.kill(zygote, signal.SIGKILL)
        run.wait_for(lambda: run.status()["generation"] > 1, "its worker was replaced")
        self.assert_as_if_nothing_had_happened(run)

    def test_coordinator_and_agent_are_killed_and_the_run_is_scaled(self):
        run = self.start_disturbed(2)
        killed = run.coordinator()["pid"]
        os.kill(killed, signal.SIGKILL)
        run.wait_for(lambda: run.coordinator()["pid"] != killed, "another coordinator served")
        self.take_ages()
        self.succeed("scale", run.run_dir, 4)
        run.wait_for_workers(4)
        self.take_ms(30)
        self.succeed("scale", run.run_dir, 1)
        run.wait_for_workers(1)
        run.wait_for_step(30)  # there is a checkpoint
        os.kill(run.agent(), signal.SIGKILL)
        self.assert_as_if_nothing_had_happened(run)


if __name__ == "__main__":
    unittest.main()
