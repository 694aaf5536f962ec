"""Models that the user brings, with real processes: a TorchScript file, and the plug-in of the page
on writing one, built by the commands that stand there."""
import os
import pathlib
import shutil
import signal
import subprocess
import unittest

from harness import BIN, ROOT, LockstepTest, synthetic_dataset

GOLDEN = ROOT / "tests/golden"
TRAIN = {"global_batch": 64, "slots": 4, "epochs": 30}  # steps of 600 samples, some short
STEPS = 10 * TRAIN["epochs"]


class ModelFileTest(LockstepTest):
    def data(self):
        path = self.scratch / "data"
        return path if path.exists() else synthetic_dataset(path, classes=10)

    def job_with(self, kind, path, **train):
        return self.job(self.data(), model={"name": kind, "path": str(path)},
                        train={**TRAIN, **train}, optimizer={"name": "adamw", "lr": 0.001},
                        checkpoint={"every_steps": 20, "keep": 2})

    def assert_any_number_of_workers_and_a_death_give_the_same(self, job):
        one = self.finish(job, "--workers", 1, name="one")
        self.assertEqual(len(one.history()), STEPS)
        self.assertLess(one.history()[-1]["loss"], one.history()[0]["loss"])
        killed = self.start(job, "--workers", 2, name="killed", slot_ms=10)
        killed.wait_for_step(20)
        os.kill(killed.worker(1), signal.SIGKILL)
        self.assertEqual(killed.wait(), 0, killed.text()[-3000:])
        four = self.finish(job, "--workers", 4, name="four")
        for run in (killed, four):
            self.assert_same_result(run, one)
            self.assertEqual(run.summary()["eval_loss"], one.summary()["eval_loss"])
        return one


class TorchScript(ModelFileTest):
    def script(self):
        path = self.scratch / "model.pt"
        shutil.copy(GOLDEN / "torchscript_images.pt", path)
        return path

    def test_any_number_of_workers_and_a_death_give_the_same_weights(self):
        self.script()
        job = self.job_with("torchscript", "model.pt")  # next to the job file
        one = self.assert_any_number_of_workers_and_a_death_give_the_same(job)
        self.succeed("replay", one.run_dir, "--step", 41)

    def test_a_resume_goes_on_with_other_workers_and_not_with_another_file(self):
        path = self.script()
        job = self.job_with("torchscript", path)
        whole = self.finish(job, "--workers", 1, name="whole")
        cut = self.start(job, "--workers", 3, name="cut", slot_ms=10)
        cut.wait_for_step(50)
        cut.process.send_signal(signal.SIGINT)
        self.assertEqual(cut.wait(), 75, cut.text()[-2000:])

        good = path.read_bytes()
        path.write_bytes(good + b"\0")
        self.assert_fails(self.start(job, "--resume", name="cut"), 64, names=path, says="SHA-256",
                          advises="back")
        path.unlink()
        self.assert_fails(self.start(job, "--resume", name="cut"), 66, names=path)

        moved = self.scratch / "elsewhere.pt"
        moved.write_bytes(good)
        rest = self.finish(job, "--resume", "--workers", 2, f"model.path={moved}", name="cut")
        self.assert_same_result(rest, whole)

    def test_text_is_learnt_by_a_script(self):
        text = self.scratch / "text.txt"
        text.write_text("every slot of every rank, " * 200)
        job = self.job(text, model={"name": "torchscript", "block": 16,
                                    "path": str(GOLDEN / "torchscript_tokens.pt")},
                       train={"global_batch": 20, "slots": 4, "epochs": 2})
        one = self.finish(job, "--workers", 1, name="one")
        two = self.finish(job, "--workers", 2, name="two")
        self.assert_same_result(two, one)
        self.assertLess(one.history()[-1]["loss"], one.history()[0]["loss"])

    def test_what_is_no_model_or_does_not_fit_is_one_line(self):
        good = (GOLDEN / "torchscript_images.pt").read_bytes()
        files = {"truncated.pt": good[:len(good) // 2], "text.pt": b"import torch\n", "empty.pt": b""}
        for name, content in files.items():
            (self.scratch / name).write_bytes(content)
        few = synthetic_dataset(self.scratch / "few", classes=4)
        script = GOLDEN / "torchscript_images.pt"
        tokens = GOLDEN / "torchscript_tokens.pt"
        for path, code, words in (
                (self.scratch / "nowhere.pt", 66, ()),
                (self.scratch, 78, "directory"),
                (self.scratch / "truncated.pt", 78, "complete"),
                (self.scratch / "text.pt", 78, "complete"),
                (self.scratch / "empty.pt", 78, "complete"),
                (script, 78, "logits (2, 4)"),
                (tokens, 78, "fails")):
            job = self.job(few, model={"name": "torchscript", "path": str(path)})
            run = self.start(job, "--workers", 2, name=f"bad-{path.name}")
            self.assert_fails(run, code, names=path, says=words)
            self.assertFalse(run.run_dir.exists(), "nothing was done in it")


class Plugin(ModelFileTest):
    def built_as_the_page_says(self):
        page = (ROOT / "worker/model/PLUGIN.md").read_text()
        commands = page.split("## Build it")[1].split("```")[1]
        cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache"))
        env = {"LOCKSTEP_DEPS_DIR": str(cache / "lockstep"), **os.environ,
               "HOME": str(self.scratch)}
        done = subprocess.run(["bash", "-euc", commands.replace("build/release", str(BIN.parent))],
                              cwd=ROOT, env=env, capture_output=True, text=True, timeout=600)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return self.scratch / "small_net/build/libsmall_net.so"

    def test_the_example_built_by_itself_gives_the_same_weights_for_any_number_of_workers(self):
        library = self.built_as_the_page_says()
        self.assert_any_number_of_workers_and_a_death_give_the_same(
            self.job_with("plugin", library))

        job = self.job_with("plugin", library, global_batch=4)
        run = self.start(job, "--workers", 1, name="bad-batch")
        self.assert_fails(run, 78, names="libsmall_net.so", says="one value")


if __name__ == "__main__":
    unittest.main()
