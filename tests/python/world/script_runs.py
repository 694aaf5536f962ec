"""Runs of scripts in Python (scripts/), for tests with real processes."""
import json
import os
import pathlib
import re
import signal
import subprocess

from harness import (BIN, DEADLINE_S, LockstepTest, installed, lockstep, processes_of,
                     scratch_directory)

HERE = pathlib.Path(__file__).resolve().parents[1]
SCRIPTS = HERE / "scripts"
PACKAGE = BIN / "python"


def make_python(directory):
    """A Python with torch and our package: the path of a program. $MORE_MODULES comes after its modules,
    $MORE_LIBRARIES after its libraries."""
    found = installed("models-python")
    if not found:
        raise AssertionError("there is no Python with torch; run deploy/install_deps.sh")
    # Starts that Python with our package. Other programs of the test do not get its libraries.
    environment = pathlib.Path(found).parents[1]
    python = directory / "python-with-lockstep"
    python.write_text("#!/bin/sh\n"
                      f"export LD_LIBRARY_PATH='{environment}/stand-ins'"
                      '"${MORE_LIBRARIES:+:$MORE_LIBRARIES}" CUDA_VISIBLE_DEVICES= '
                      "PYTHONNOUSERSITE=1 "
                      f"PYTHONPATH='{PACKAGE}:{installed('frameworks-root')}'"
                      '"${MORE_MODULES:+:$MORE_MODULES}"\n'
                      f"exec '{environment}/bin/python' \"$@\"\n")
    python.chmod(0o755)
    return str(python)


def variables_of(python, scratch):
    """Variables that a run of a script needs besides its environment."""
    return {"LOCKSTEP_PYTHON": python, "PYTHONDONTWRITEBYTECODE": "1",
            "TORCHINDUCTOR_CACHE_DIR": str(scratch / "inductor")}


def children_of(run_dir, pid):
    """Pids of the run's processes that this process started: a worker's zygote, or a zygote's data
    processes."""
    return [child for child in processes_of(run_dir) if parent_of(child) == pid]


def parent_of(pid):
    try:
        stat = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    return int(stat.rsplit(")", 1)[1].split()[1])


class ScriptTest(LockstepTest):
    """Needs a Python with torch, which deploy/install_deps.sh makes."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.python = make_python(scratch_directory(cls.addClassCleanup))

    def setUp(self):
        super().setUp()
        self.pace = self.scratch / "pace"

    def take_ms(self, milliseconds):
        """Makes every slot of a script that got `self.pace` sleep for so long from now on, so that
        a run lasts until a test is through with it, on any machine."""
        fresh = self.pace.with_suffix(".new")
        fresh.write_text(str(milliseconds))
        fresh.rename(self.pace)

    def take_ages(self):
        """Keeps runs from ending while new workers come, which have to import torch."""
        self.take_ms(2000)

    def environment(self, env=None, slot_ms=None):
        return {**super().environment(env, slot_ms), **variables_of(self.python, self.scratch)}

    def need(self, library):
        """Skips the test if the Python of the tests lacks the library."""
        found = subprocess.run([self.python, "-c", f"import {library}"], stderr=subprocess.DEVNULL,
                               env=self.environment(), check=False)
        if found.returncode != 0:
            self.skipTest(f"the Python of the tests has no {library}")

    def alone(self, script, *words, expect=0, **sections):
        """Runs `python SCRIPT WORDS`. Returns its output."""
        settings = {f"LOCKSTEP_{key}": value for key, value in sections.items()}
        done = subprocess.run([self.python, str(script), *map(str, words)], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              timeout=2 * DEADLINE_S,  # run_each.py runs tens of scripts
                              env={**self.environment(), **settings}, cwd=self.scratch)
        self.assertEqual(done.returncode, expect, done.stdout[-3000:])
        return done.stdout

    def weights_alone(self, script, *words, **sections):
        found = re.search(r"weights_sha256 (\w{64})", self.alone(script, *words, **sections))
        self.assertTrue(found)
        return found[1]

    def write_script(self, text, name="train.py"):
        path = self.scratch / name
        path.write_text(text)
        return path

    def assert_whole_log(self, run):
        """Checks that script_log.jsonl has every step of the run once, in order, as train.py logs
        it."""
        lines = (run.run_dir / "script_log.jsonl").read_text().splitlines()
        logged = [(row["step"], row["applied"], f"{row['lr']:.6g}") for row in map(json.loads, lines)]
        self.assertEqual(logged, [(row["step"], row["step"], f"{row['lr']:.6g}")
                                  for row in run.history()])
        self.assertEqual([*run.run_dir.glob("script_log.jsonl.tmp.*")], [])

    def log_of(self, run):
        """The output of the workers."""
        return "".join(path.read_text(errors="replace")
                       for path in (run.run_dir / "logs").glob("worker-*.stderr"))

    def kill_and_go_on(self, run, worker):
        """Kills the worker, and waits until the others have gone on without it."""
        os.kill(run.worker(worker), signal.SIGKILL)
        run.wait_for(lambda: run.status()["generation"] > 1, "the run went on without it")

    def stop(self, run):
        """Stops the run as Ctrl-C does, with a checkpoint."""
        run.process.send_signal(signal.SIGINT)
        self.assertEqual(run.wait(), 75, run.text()[-3000:])

    def try_replay(self, run, *words):
        """The ended `lockstep replay` of the run, which starts its script."""
        return lockstep("replay", run.run_dir, *words, env=self.environment())

    def replayed(self, run, step, expect=0):
        """The output of a replay of this step."""
        done = self.try_replay(run, "--step", step)
        self.assertEqual(done.returncode, expect, done.stdout + done.stderr)
        return done.stdout

    def start_script(self, script, words=(), workers=1, name="run", overrides=(), **more):
        arguments = [f"script.args={json.dumps([str(word) for word in words])}"] if words else []
        return self.start(script, "--workers", workers, *overrides, *arguments, name=name, **more)
