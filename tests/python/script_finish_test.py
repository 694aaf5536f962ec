"""A script ends its run at the same step in every world, whatever dies meanwhile, and for good."""
import contextlib
import os
import signal
import unittest

from harness import processes_of
from script_runs import ScriptTest

# An epoch has a step of 8 samples, and one of 2, in which slots are empty. While `hold` is there, the
# evaluation after step 4 does not end; while `silent` is, the script does not end its run.
SCRIPT = """
# /// lockstep
# train: {global_batch: 8, slots: 4, epochs: 4}
# checkpoint: {every_steps: 100}
# ///
import os, sys, time, torch, lockstep
run = lockstep.start()
where, hold, silent = sys.argv[1:]
torch.manual_seed(5)
data = torch.utils.data.TensorDataset(torch.randn(10, 4), torch.randn(10, 1))
model = torch.nn.Linear(4, 1)
def ends(): return run.step >= 4 - (where == "body") and not os.path.exists(silent)
def is_first():
    try: return os.open(silent + ".first", os.O_CREAT | os.O_EXCL) > 0
    except FileExistsError: return False
def after():
    if where == "after" and ends(): run.finish()
    if where == "alone" and ends() and is_first(): run.finish()
def score(batch):
    while run.step == 4 and os.path.exists(hold): time.sleep(0.02)
    return (model(batch[0]) - batch[1]).square().mean()
run.keep(model=model, optimizer=torch.optim.SGD(model.parameters(), 0.1), after_step=after)
run.evaluate(score, data)
for x, y in run.batches(data):
    run.backward((model(x) - y).square().mean())
    if where == "body" and ends(): run.finish()
print("after", run.step, "of", run.total_steps, "in epochs of", run.steps_per_epoch, flush=True)
"""
LEFT = """
# /// lockstep
# train: {global_batch: 4, slots: 2, max_steps: 9}
# ///
import torch, lockstep
run = lockstep.start()
model = torch.nn.Linear(4, 1)
run.keep(model=model, optimizer=torch.optim.SGD(model.parameters(), 0.1))
def train():
    for x in run.batches([torch.ones(4)] * 8):
        run.backward(model(x).square().mean())
        if run.step == 2: return
train()
"""


class Finish(ScriptTest):
    known = None

    def setUp(self):
        super().setUp()
        self.hold, self.silent = self.scratch / "hold", self.scratch / "silent"
        self.script = self.write_script(SCRIPT)

    def weights(self):
        """The weights of a run of four steps."""
        cls = type(self)
        cls.known = cls.known or self.weights_alone(self.script, *self.words("plain"),
                                                    TRAIN__MAX_STEPS="4")
        return cls.known

    def words(self, where):
        return [where, self.hold, self.silent]

    def run_it(self, where, workers, name):
        return self.start_script(self.script, self.words(where), workers, name)

    def assert_ended(self, run, weights):
        self.assertEqual(run.wait(), 0, run.text()[-3000:])
        summary = run.summary()
        self.assertEqual((summary["weights_sha256"], summary["steps"]), (weights, 4))
        self.assertIn("its script ended the run after step 4 of 8", run.coordinator_log())
        self.assertEqual(len((run.run_dir / "evals.jsonl").read_text().splitlines()), 2)
        self.audit(run)

    def hold_at_the_end(self, where, workers):
        """A run whose journal has the end, and whose last evaluation does not finish."""
        self.hold.touch()
        run = self.run_it(where, workers, "run")
        log = run.run_dir / "logs" / "coordinator.log.jsonl"
        run.wait_for(lambda: '"script_end"' in log.read_text(), "the script had ended the run")
        return run

    def test_the_step_is_the_same_in_every_world(self):
        self.assertEqual(self.weights_alone(self.script, *self.words("body")), self.weights())
        run = self.run_it("body", 3, "run")
        self.assert_ended(run, self.weights())
        self.assertIn("after 4 of 8 in epochs of 2", self.log_of(run))

    def test_the_writer_dies_at_the_end(self):
        run = self.hold_at_the_end("after", 2)
        os.kill(run.worker(0), signal.SIGKILL)
        run.wait_for(lambda: run.status()["generation"] > 1, "the others went on")
        self.hold.unlink()
        self.assert_ended(run, self.weights())

    def test_all_die_at_the_end_and_the_run_stays_ended_until_it_is_to_be_longer(self):
        run = self.hold_at_the_end("body", 2)
        for pid in processes_of(run.run_dir):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        run.wait()
        self.hold.unlink()
        self.silent.touch()  # nothing but the journal says that it ends
        self.assert_ended(self.start("--resume"), self.weights())
        again = self.start("--resume")
        self.assertEqual(again.wait(), 0, again.text()[-3000:])
        self.assertNotIn("waiting for workers", again.text(), "it is complete")
        longer = self.start("--resume", "train.epochs=5")
        self.assertEqual(longer.wait(), 0, longer.text()[-3000:])
        self.assertEqual(longer.summary()["steps"], 10)

    def test_workers_that_are_at_odds_end_where_the_first_one_does(self):
        run = self.run_it("alone", 2, "run")
        self.assert_ended(run, self.weights())

    def test_a_loop_that_is_left_is_refused_alone_as_in_a_worker(self):
        said = self.alone(self.write_script(LEFT), expect=64)  # in a worker: script_misuse_test.py
        self.assertIn("the script left its loop", said)
        self.assertIn("run.finish() ends a run early", said)


if __name__ == "__main__":
    unittest.main()
