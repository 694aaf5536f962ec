"""A debugger in a training loop: alone it changes no bit, and in a worker it stops the run for as
long as a person likes."""
import os
import pty
import unittest

from fails_with import events
from script_runs import SCRIPTS, ScriptTest

TRAIN = SCRIPTS / "train.py"
STEP = 5
# In front of the loss: the worker that is first to come there stops in pdb on a terminal.
STOPS = """    if run.step == {step} and not pathlib.Path("{flag}").exists():
        with contextlib.suppress(FileExistsError):
            os.close(os.open("{flag}", os.O_CREAT | os.O_EXCL))
            terminal = open("{terminal}", "r"), open("{terminal}", "w")
            pdb.Pdb(stdin=terminal[0], stdout=terminal[1]).set_trace()
"""


class Debugger(ScriptTest):
    weights = None

    def test_alone_under_pdb_the_weights_are_the_same(self):
        text = self.alone("-m", "pdb", "-c", "continue", "-c", "quit", TRAIN, "mlp")
        self.assertIn("weights_sha256 " + self.undisturbed(), text)

    def undisturbed(self):
        """The weights of the loop without a debugger."""
        cls = type(self)
        cls.weights = cls.weights or self.weights_alone(TRAIN, "mlp")
        return cls.weights

    def start_with_pdb(self, terminal):
        head, loop, body = TRAIN.read_text().partition("    time.sleep(0 if run.is_trial")
        stops = STOPS.format(step=STEP, flag=self.scratch / "flag", terminal=terminal)
        imports = head.replace("import pathlib\n",
                               "import contextlib\nimport os\nimport pathlib\nimport pdb\n")
        script = self.write_script(imports + stops + loop + body)
        return self.start_script(script, ["mlp"], 2)

    def read_until(self, master, prompt):
        text = b""
        while prompt not in text:
            text += os.read(master, 4096)

    def test_the_run_knows_of_a_worker_that_pdb_has_stopped(self):
        master, terminal = pty.openpty()
        self.addCleanup(os.close, master)
        self.addCleanup(os.close, terminal)
        run = self.start_with_pdb(os.ttyname(terminal))
        self.read_until(master, b"(Pdb)")
        run.wait_for(lambda: events(run, "worker_paused"), "the run knew of the debugger")
        shown = [member["state"] for member in run.status()["members"]]
        self.assertEqual(sorted(shown), ["paused", "training"])  # what is spared: decide_hang_test.cc
        os.write(master, b"continue\n")
        self.assertEqual(run.wait(), 0, run.text()[-3000:])
        self.assertEqual(events(run, "member_died"), [])
        self.assertEqual(run.summary()["weights_sha256"], self.undisturbed())


if __name__ == "__main__":
    unittest.main()
