"""A script's process ends by a signal, whatever handlers the script has; by an exception after its
loop; or by Ctrl-C, which a script that runs alone notices at once."""
import signal
import subprocess
import unittest

from script_runs import ScriptTest

SCRIPT = """
# /// lockstep
# train: {global_batch: 4, slots: 2, max_steps: 100000}
# ///
import os, signal, torch, lockstep
def before(*_): print("the handler from before the loop")
def within(*_): print("the handler from within the loop")
signal.signal(signal.SIGTERM, before)
signal.signal(signal.SIGUSR1, signal.SIG_IGN)
run = lockstep.start()
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
def after():
    if run.step == 2: signal.signal(signal.SIGTERM, within)
    if run.step == 4: os.kill(os.getpid(), signal.SIGTERM)
run.keep(model=model, optimizer=optimizer, after_step=after)
try:
    for x in run.batches([torch.ones(4)] * 8):
        run.backward(model(x).square().mean())
finally:
    print("finally after step", run.step)
os.kill(os.getpid(), signal.SIGTERM)
os.kill(os.getpid(), signal.SIGUSR1)
raise ArithmeticError("behind the loop")
"""


FAILING = """
# /// lockstep
# train: {global_batch: 4, slots: 2, max_steps: 9}
# ///
import sys, torch, lockstep
run = lockstep.start()
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
def update():
    optimizer.step()
    if run.step == 3: raise ArithmeticError("as it was updated")
def after():
    if run.step == 3: raise ArithmeticError("after the step")
run.keep(model=model, optimizer=optimizer, **{sys.argv[1]: {"update": update, "after_step": after}[sys.argv[1]]})
for x in run.batches([torch.ones(4)] * 8):
    run.backward(model(x).square().mean())
"""


RAISING = """
# /// lockstep
# train: {global_batch: 4, slots: 2, max_steps: 9, on_bad_samples: skip}
# cluster: {lease_s: 120}
# ///
import torch, lockstep
run = lockstep.start()
model = torch.nn.Linear(4, 1)
run.keep(model=model, optimizer=torch.optim.SGD(model.parameters(), 0.1))
settings = {}
for x in run.batches([torch.ones(4)] * 8):
    if run.step == 3: settings["conf"]
    run.backward(model(x).square().mean())
"""


class Ends(ScriptTest):
    def test_what_the_body_raises_at_two_slots_of_a_step_is_no_samples_fault(self):
        run = self.start_script(self.write_script(RAISING), workers=2)
        self.assertEqual(run.wait(), 64, run.text()[-3000:])
        said = run.text()
        self.assertIn("step 4: the script failed: KeyError: 'conf'; ", said)
        self.assertIn("the script is at fault", said)
        self.assertEqual(said.count("Traceback (most recent call last)"), 1, said[-3000:])
        self.assertRegex(said, r'train.py", line \d+, in <module>')
        self.assertEqual(self.audit(run)["skipped_by_policy"], [])
        self.assertNotIn("killed", said)

    def test_what_fails_in_every_worker_alike_ends_the_run_at_once_with_the_traceback(self):
        script = self.write_script(FAILING)
        for workers, where, words in ((1, "after_step", "after the step"),
                                      (2, "update", "as it was updated")):
            run = self.start_script(script, [where], workers=workers, name=where)
            self.assertEqual(run.wait(), 64, run.text()[-3000:])
            self.assertIn(f"ArithmeticError: {words}, in step 3", run.text())
            self.assertRegex(run.text(), r'train.py", line \d+, in (after|update)')
            agents = "".join(path.read_text() for path in (run.run_dir / "logs").glob("agent*"))
            self.assertEqual(agents.count('"worker_started"'), workers)

    def test_a_signal_is_the_runs_in_the_loop_and_the_scripts_behind_it(self):
        run = self.start_script(self.write_script(SCRIPT))
        self.assertEqual(run.wait(), 75, run.text()[-3000:])
        said = self.log_of(run)
        self.assertIn("the script's handler before() of SIGTERM waits until the loop is over", said)
        self.assertIn("the script's handler within() of SIGTERM waits", said)
        self.assertNotIn("the handler from", said)
        self.assertIn("finally after step", said)
        applied = len(run.history())
        self.assertLess(applied, 100000)

        rest = self.start("--resume", f"train.max_steps={applied + 2}")
        self.assertEqual(rest.wait(), 70, rest.text()[-3000:])  # the script's code, after its loop
        self.assertEqual(rest.summary()["steps"], applied + 2)
        said = rest.text()
        self.assertIn("the run is complete, but after its loop the script of worker 0", said)
        self.assertIn("ArithmeticError: behind the loop", said)
        self.assertEqual(self.log_of(rest).count("the handler from before the loop"), 1)
        self.assertIn("ArithmeticError: behind the loop", self.log_of(rest))
        agents = "".join(path.read_text() for path in (rest.run_dir / "logs").glob("agent*"))
        self.assertIn("exited with code 70", agents)

    def test_alone_signals_are_the_scripts_and_ctrl_c_ends_the_loop(self):
        process = subprocess.Popen([self.python, self.write_script(SCRIPT)], text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   env={**self.environment(), "PYTHONUNBUFFERED": "1"})
        self.assertEqual(process.stdout.readline(), "the handler from within the loop\n")
        process.send_signal(signal.SIGINT)
        said, trace = process.communicate()
        self.assertEqual(process.returncode, -signal.SIGINT, trace)
        self.assertIn("finally after step", said)
        self.assertIn("KeyboardInterrupt", trace)


if __name__ == "__main__":
    unittest.main()
