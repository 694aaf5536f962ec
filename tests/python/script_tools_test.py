"""The tools on one run of a training loop in Python: each works, or says what it cannot do on such a run
and what to do instead."""
import json
import subprocess
import unittest

from harness import BIN, get, lockstep
from script_runs import SCRIPTS, ScriptTest

TRAIN = SCRIPTS / "train.py"
STEPS = 22
MODEL = "model.safetensors"  # what Python can load


def names_in(safetensors):
    """Names of the tensors, which stand in the file's JSON header."""
    whole = safetensors.read_bytes()
    header = json.loads(whole[8:8 + int.from_bytes(whole[:8], "little")])
    return {name for name in header if name != "__metadata__"}


class Tools(ScriptTest):
    def test_each_of_them(self):
        run = self.start_script(TRAIN, ["mlp"], workers=2)
        self.assertEqual(run.wait(), 0, run.text()[-3000:])
        self.weights = run.summary()["weights_sha256"]
        self.look_at(run.run_dir)
        self.check_checkpoints(run.run_dir)
        self.audit(run)
        self.export_curves(run.run_dir)
        self.see_in_the_browser(run.run_dir)
        self.refuse(run.run_dir)

    def look_at(self, run_dir):
        for words, said in ((("status", run_dir), ["done after 22 steps", self.weights]),
                            (("top", run_dir), ["step 22/22", "forward"]),
                            (("runs", run_dir.parent), [run_dir.name, "script", "done"]),
                            (("resolve", TRAIN), ["name: script", "train.py"])):
            done = lockstep(*words)
            self.assertIn(done.returncode, (0, 3), done.stderr)  # 3: of a run that is over
            for word in said:
                self.assertIn(word, done.stdout, words)
        page = self.scratch / "report.html"
        self.succeed("report", run_dir, "-o", page)
        self.assertIn("samples/s", page.read_text())

    def check_checkpoints(self, run_dir):
        listed = self.printed("ckpt", "ls", run_dir).split()
        newest = run_dir / "checkpoints" / listed[-1].rsplit("/", 1)[-1]
        self.assertIn(self.weights, self.printed("ckpt", "hash", run_dir))
        self.assertEqual(self.printed("ckpt", "verify", run_dir).count("ok  "), 2)
        self.assertLessEqual({"1.weight", "1.bias", "3.weight", "3.bias"}, names_in(newest / MODEL))

    def export_curves(self, run_dir):
        self.succeed("export", "tensorboard", run_dir)
        self.assertTrue(list(run_dir.rglob("*tfevents*")))

    def see_in_the_browser(self, run_dir):
        process = subprocess.Popen([BIN / "lockstep", "ui", run_dir], stdout=subprocess.PIPE, text=True)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.terminate)
        shown = json.loads(get(process.stdout.readline().split()[0] + "api/v1/status"))
        self.assertEqual((shown["step"], shown["total_steps"]), (STEPS, STEPS))

    def refuse(self, run_dir):
        """One sentence, with what to do instead."""
        of_model = dict(names=["script", run_dir], advises=MODEL)
        for words, code, expected in (
                (("predict", run_dir, self.scratch), 64, of_model),
                (("eval", run_dir), 64, of_model),
                (("export", "model", run_dir, self.scratch / "out"), 64, of_model),
                (("generate", run_dir, "--prompt", "a"), 64, of_model),
                (("replay", run_dir, "--step", 5, "--slot", 1), 64, dict(names="--slot", advises="leave it out")),
                (("doctor", TRAIN), 64, dict(names="script", advises="lockstep top"))):
            with self.subTest(words[0]):
                done = lockstep(*words)
                self.assert_fails(done, code, **expected)
                self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)


if __name__ == "__main__":
    unittest.main()
