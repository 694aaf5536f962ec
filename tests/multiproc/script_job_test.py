"""The job of a script: where its keys stand, which there are, refusals before anything starts, and
the arguments and variables of its workers."""
import json
import os
import subprocess
import unittest

from harness import BIN, LockstepTest, lockstep

BLOCK = "# /// lockstep\n# job: mine\n# train: {global_batch: 64, slots: 4, max_steps: 5}\n# ///\n"
# No command may run it to read the job.
LOOP = "raise SystemExit('the script ran')\n"


class ScriptJobs(LockstepTest):
    def script(self, text=BLOCK + LOOP, name="train.py"):
        path = self.scratch / name
        path.write_text(text)
        return path

    def refuse(self, *words, code=64, names=(), advises=()):
        for command in ("run", "resolve"):
            self.assert_fails(lockstep(command, *words), code, names=names, advises=advises)

    def test_its_keys_stand_in_the_script(self):
        text = self.printed("resolve", self.script())
        self.assertIn("job: mine\n", text)
        self.assertIn("global_batch: 64\n", text)
        self.assertIn(f"path: {self.scratch}/train.py\n", text)
        self.assertIn("start_timeout_s: 600\n", text)
        self.assertNotIn("optimizer", text)
        self.assertEqual(text, self.printed("run", self.script(), "--print-config"))

    def test_words_behind_the_dashes_are_the_scripts(self):
        text = self.printed("resolve", self.script(), "train.max_steps=9", "--", "--lr", "0.1",
                            "train.max_steps=7", "-n", "-n")
        self.assertIn('args: ["--lr", 0.1, "train.max_steps=7", "-n", "-n"]\n', text)
        self.assertIn("max_steps: 9\n", text)
        self.refuse(self.script(), "--lr", "0.1", names="--lr", advises="-- --lr 0.1")
        self.refuse(self.script(), "fast", names="fast", advises="-- fast")

    def test_what_is_printed_is_the_same_job(self):
        text = self.printed("resolve", self.script(), "--workers", 3, "--", "--name", "it's \"me\"", "")
        kept = self.scratch / "kept.yaml"
        kept.write_text(text)
        self.assertEqual(self.printed("resolve", kept), text)
        messages = [subprocess.check_output([BIN / "lockstep", "resolve", "--protobuf", *words])
                    for words in ([kept], [self.script(), "--workers", "3", "--", "--name",
                                           "it's \"me\"", ""])]
        self.assertEqual(*messages)
        self.assertIn(b"train.py", messages[0])

    def test_a_job_file_may_name_it(self):
        self.script(LOOP)
        job = self.scratch / "job.yaml"
        job.write_text("script: {path: train.py, args: [a]}\ntrain: {global_batch: 8, epochs: 1}\n")
        text = self.printed("resolve", job)
        self.assertIn("name: script\n", text)
        self.assertIn("args: [a]\n", text)

    def test_what_the_script_says_itself_is_refused(self):
        for given, advice in (("optimizer.lr=0.1", "torch.optim"), ("model.dropout=0.1", "model"),
                              ("schedule=cosine", "lr_scheduler"), ("train.loss=mse", "loss"),
                              ("data.holdout=0.1", "run.batches"),
                              ("train.global_batch=auto", "number"), ("comm.backend=mpi", "host"),
                              ("train.precision=bf16", "autocast")):
            with self.subTest(given):
                self.refuse(self.script(), given, names=[given.split("=")[0], "script"],
                            advises=advice)

    def test_a_message_names_the_line_of_the_script(self):
        for text, where in ((f"# /// lockstep\n# ///\n{BLOCK}", "train.py:3"),
                            ("import torch\n# /// lockstep\n# seed: 1\nx = 2\n", "train.py:2"),
                            ("# /// lockstep\n# train: {epochs: 2}}\n# ///\n", "train.py:2"),
                            ("# /// lockstep\n#\n# sed: 2\n# ///\n", "train.py:3"),
                            ("# /// lockstep\n# optimizer: adamw\n# ///\n", "train.py:2")):
            with self.subTest(text):
                self.refuse(self.script(text), names=where)

    def test_a_script_that_is_not_there_is_refused(self):
        self.refuse(self.scratch / "none.py", code=66, names="none.py")
        (self.scratch / "folder.py").mkdir()
        self.refuse(self.scratch / "folder.py", names="folder.py")
        job = self.scratch / "job.yaml"
        length = "\ntrain: {global_batch: 8, epochs: 1}\n"
        job.write_text("script: {path: none.py}" + length)
        self.refuse(job, code=66, names=["script.path", "none.py", "job.yaml"])
        job.write_text("script: {path: folder.py}" + length)
        self.refuse(job, names=["script.path", "directory"])
        job.write_text("model: script" + length)
        self.refuse(job, names="script.path", advises="lockstep run train.py")
        job.write_text("model: gpt2\nscript: {path: none.py}" + length)
        self.refuse(job, names=["script.path", "model.name"])

    def test_without_a_block_the_message_says_where_keys_stand(self):
        self.refuse(self.script(LOOP), names="train.global_batch", advises="# /// lockstep")
        self.printed("resolve", self.script(LOOP), "train.global_batch=8", "train.max_steps=2")

    def test_a_batch_script_starts_agents_with_it(self):
        text = self.printed("sbatch", self.script(), "--run-dir", self.scratch / "run", "--nodes", 2,
                            "script.args=[--fast]", "--", "--account=vision")
        self.assertIn(f"{self.scratch}/train.py", text)
        self.assertIn("script.args=[--fast]", text)
        self.assertIn("#SBATCH --account=vision", text)

    def test_pods_get_it_in_their_config_map(self):
        text = self.printed("k8s", "render", self.script(), "--image", "here/lockstep:1",
                            "--run-claim", "runs", "--", "--lr", "0.1")
        self.assertIn("train.py: ", text)
        self.assertIn("/etc/lockstep/train.py", text)
        self.assertIn("--lr", text)


class ModuleJobs(LockstepTest):
    """Uses `-m proj.train` in the folder of the package instead of the file."""

    def setUp(self):
        super().setUp()
        self.file = self.scratch / "proj" / "train.py"
        self.file.parent.mkdir()
        self.file.write_text(BLOCK + LOOP)

    def ask(self, *words, **more):
        return lockstep(*words, cwd=self.scratch, **more)

    def printed_there(self, *words):
        done = self.ask(*words)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_every_command_takes_it(self):
        text = self.printed_there("resolve", "-m", "proj.train", "train.max_steps=9", "--", "--lr", "-m")
        for line in ("job: mine\n", f"path: {self.file}\n", "module: proj.train\n", "max_steps: 9\n",
                     'args: ["--lr", "-m"]\n'):
            self.assertIn(line, text)
        for words in (("run", "-m", "proj.train", "--print-config"),
                      ("run", "--print-config", "--module=proj.train"),
                      ("run", "proj/train.py", "--print-config", "-m", "proj.train"),
                      ("resolve", "script.module=proj.train")):
            self.assertEqual(self.printed_there(*words, "train.max_steps=9", "--", "--lr", "-m"), text)
        (self.scratch / "kept.yaml").write_text(text)
        self.assertEqual(self.printed("resolve", self.scratch / "kept.yaml"), text)
        self.assert_fails(self.ask("doctor", "-m", "proj.train"), 64, names="script",
                          advises="lockstep top")

    def test_a_batch_script_starts_agents_with_the_file_as_that_module(self):
        text = self.printed_there("sbatch", "-m", "proj.train", "--run-dir", "run", "--", "--mem=1G")
        self.assertRegex(text, rf"agent {self.file} script\.module=proj\.train --run-dir ")
        self.assertIn("#SBATCH --mem=1G", text)

    def test_pods_take_the_package_of_their_image(self):
        for kind in ("jobset", "job", "trainjob", "mpijob"):
            text = self.printed_there("k8s", "render", "-m", "proj.train", "--image", "here/lockstep:1",
                                      "--kind", kind, "--run-claim", "runs", "--", "--lr", "0.1")
            self.assertIn("script.module=proj.train", text)
            self.assertNotIn("ConfigMap", text)
            self.assertNotIn("/etc/lockstep", text)
            self.assertNotIn(str(self.scratch), text)
            self.assertIn("mine", text, "the name of the run is the job's")

    def test_what_is_no_module_is_refused_with_what_to_write(self):
        for word, code, expected in (
                ("proj/train.py", 64, dict(names="proj/train.py", advises="-m proj.train")),
                ("proj.train.py", 64, dict(names="proj.train.py", advises="-m proj.train")),
                ("proj.none", 66, dict(names=["proj.none", "proj/none.py", str(self.scratch)],
                                       advises=["the folder that holds proj", "PYTHONPATH"])),
                ("other.train", 66, dict(names="other/train.py", advises="the folder that holds other"))):
            for command in ("run", "resolve", "doctor"):
                with self.subTest(word=word, command=command):
                    self.assert_fails(self.ask(command, "-m", word), code, **expected)
        self.assert_fails(self.ask("run", "-m", "proj.train", "--lr", "0.1"), 64, names="--lr",
                          advises="-- --lr 0.1")
        (self.scratch / "other.py").write_text(BLOCK)
        self.assert_fails(self.ask("resolve", "other.py", "-m", "proj.train"), 64,
                          names=["script.module", "other.py"], advises="leave one of the two out")
        (self.scratch / "job.yaml").write_text("model: mlp\ndata: {train: {path: d}}\n"
                                               "train: {global_batch: 8, epochs: 1}\n")
        self.assert_fails(self.ask("resolve", "job.yaml", "-m", "proj.train"), 64,
                          names=["script.module", "model.name"], advises="leave one of the two out")

    def test_an_installed_module_is_found_by_python(self):
        done = self.ask("resolve", "-m", "proj.train", env={**os.environ, "PYTHONPATH": str(self.scratch)})
        self.assertEqual(done.returncode, 0, done.stderr)
        done = lockstep("resolve", "-m", "proj.train", cwd="/",
                        env={**os.environ, "PYTHONPATH": str(self.scratch)})
        self.assertIn(f"path: {self.file}\n", done.stdout, done.stderr)


# Replaces Python: records how it was started, and ends as if the script were wrong.
STAND_IN = """#!/usr/bin/env python3
import json, os, sys
if sys.argv[1] == "-c":
    sys.exit(int(os.environ.get("ANSWER", "0")))
with open(os.environ["TOLD"], "a") as told:
    told.write(json.dumps({"argv": sys.argv[1:], "env": dict(os.environ)}) + "\\n")
print("the script is wrong", file=sys.stderr)
sys.exit(64)
"""


class ScriptWorkers(LockstepTest):
    def setUp(self):
        super().setUp()
        self.told = self.scratch / "told"
        self.python = self.scratch / "stand-in"
        self.python.write_text(STAND_IN)
        self.python.chmod(0o755)
        self.script = self.scratch / "train.py"
        self.script.write_text(BLOCK + LOOP)

    def run_script(self, *words, **more):
        environment = {**os.environ, "LOCKSTEP_PYTHON": str(self.python), "TOLD": str(self.told),
                       **more}
        return lockstep("run", self.script, "--run-dir", self.scratch / "run", *words,
                        env=environment)

    def test_a_worker_learns_what_it_is_from_one_variable(self):
        ended = self.run_script("--workers", 2, "train.threads_per_worker=3", "--", "--lr", "0.1")
        self.assert_fails(ended, 64, names="before it registered")
        self.assertIn("its last words:\nthe script is wrong\n", ended.stdout + ended.stderr)
        started = [json.loads(line) for line in self.told.read_text().splitlines()]
        self.assertIn(len(started), (1, 2), "none is started again")
        for one in started:
            self.assertEqual(one["argv"][:2], ["-u", "-c"])
            self.assertEqual(one["argv"][3:], [str(self.script), "--lr", "0.1"])
            self.assertEqual(one["env"]["OMP_NUM_THREADS"], "3")
            told = dict(line.split("=", 1) for line in one["env"]["LOCKSTEP_WORKER"].split("\n"))
            self.assertEqual(set(told), {"run_dir", "local_rank", "gpu", "log_name", "workers_here",
                                         "node", "process", "in_hand_fd"})
            self.assertEqual(told["run_dir"], str(self.scratch / "run"))
            self.assertEqual(told["log_name"], "worker-" + told["local_rank"])
            self.assertEqual(told["workers_here"], "2")

    def test_a_python_that_cannot_run_it_is_refused_before_anything_starts(self):
        for answer, advice in ((3, "newer"), (4, "pip install lockstep"), (5, "pip install torch")):
            with self.subTest(answer):
                self.assert_fails(self.run_script(ANSWER=str(answer)), 78,
                                  names=str(self.python), advises=[advice, "LOCKSTEP_PYTHON"])
        self.python.unlink()
        self.assert_fails(self.run_script(), 78, names="LOCKSTEP_PYTHON", advises="torch")
        self.assertFalse(self.told.exists())
        self.assertFalse((self.scratch / "run").exists())


if __name__ == "__main__":
    unittest.main()
