"""Lockstep's wheel (deploy/wheel.py): every Python from 3.10 installs it; and where nothing else of ours is
installed, its programs and its package train with the weights of the build that it was made of."""
import functools
import os
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

from clean_root import WHY_NOT, inside, make_root
from fails_with import outcome_of
from harness import BIN, DEADLINE_S, ROOT, LockstepTest, installed, scratch_directory, synthetic_dataset
from range_server import RangeServer

PYTHONS = ("3.10", "3.11", "3.12", "3.13")
SCRIPT = ROOT / "tests/python/scripts/train.py"
WORDS = ["cnn", "fp32", "1"]
# A Python, and what every program in C++ expects of the machine.
PACKAGES = ["python3", "libstdc++6"]


def outcome(command, **more):
    """Exit code and output."""
    done = subprocess.run([str(word) for word in command], text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=DEADLINE_S, **more)
    return done.returncode, done.stdout


def succeed(command, **more):
    """The output."""
    code, text = outcome(command, **more)
    if code != 0:
        raise AssertionError(f"{' '.join(map(str, command))} ended with {code}: {text[-3000:]}")
    return text


def interpreter(version):
    """Of Python `version`, with pip: in PATH, else one of pyenv's; None where there is none."""
    pyenv = pathlib.Path(os.environ.get("PYENV_ROOT", pathlib.Path.home() / ".pyenv")) / "versions"
    found = [shutil.which(f"python{version}"), *sorted(pyenv.glob(f"{version}.*/bin/python{version}"))]
    for path in filter(None, found):  # a shim of pyenv may lead nowhere
        if outcome([path, "-c", "import pip, venv"])[0] == 0:
            return path
    return None


def private(what):
    """The Python of an environment of ours; it is made of the machine's own."""
    python = installed(f"{what}-python")
    if not python:
        raise AssertionError(f"there is no {what}-python; run deploy/install_deps.sh --for tests")
    return pathlib.Path(python)


@functools.cache
def wheel():
    out = scratch_directory(unittest.addModuleCleanup)
    succeed([sys.executable, ROOT / "deploy/wheel.py", "--build", BIN.parent, "--out", out])
    path, = out.iterdir()
    return path


def install(python, place):
    """The wheel alone, in a new environment of `python`."""
    succeed([python, "-m", "venv", "--without-pip", place])
    succeed([python, "-m", "pip", "--python", place / "bin/python", "install", "--quiet", "--no-index",
             "--no-deps", "--disable-pip-version-check", wheel()])


class Wheel(LockstepTest):
    def test_every_python_installs_it_and_its_programs_run_this_python(self):
        script = self.scratch / "train.py"
        script.write_text("# /// lockstep\n# train: {global_batch: 8, slots: 2, epochs: 1}\n# ///\n"
                          "import lockstep\nlockstep.start()\n")
        for version in PYTHONS:
            with self.subTest(python=version):
                python = interpreter(version)
                if python is None:
                    self.skipTest(f"there is no Python {version}")
                place = self.scratch / version
                install(python, place)
                run = [place / "bin/lockstep", "run", script, "--run-dir", self.scratch / f"run-{version}"]
                self.assert_fails(outcome(run), 78, names=str(place / "bin/python"),
                                  advises="pip install torch")
                # `lockstep resolve` gave the job, and the library of the worker took it.
                code, text = outcome([place / "bin/python", script])
                self.assertEqual(code, 1, text)
                self.assertIn("No module named 'torch'", text)


class CleanRoot(LockstepTest):
    """With Python and torch, and nothing else of ours."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        if WHY_NOT:
            raise unittest.SkipTest(f"no root can be made here: {WHY_NOT}")
        scratch = scratch_directory(cls.addClassCleanup)
        cls.root, cls.place = make_root(scratch, PACKAGES), scratch / "place"
        (cls.root / "etc/passwd").write_text("root:x:0:0:root:/root:/bin/sh\n")  # torch asks who it is
        install(private("wheel"), cls.place)  # which has pip
        cls.models = private("models").parents[1]
        torch = pathlib.Path(installed("torch-root")).parent
        others, = cls.models.glob("lib/python3*/site-packages")
        site, = cls.place.glob("lib/python3*/site-packages")
        (site / "torch.pth").write_text(f"{others}\n{torch}\n")
        cls.mounts = [(path, str(path)[1:]) for path in (cls.place, cls.models, torch, SCRIPT.parent)]
        cls.env = {"LD_LIBRARY_PATH": str(cls.models / "stand-ins"), "CUDA_VISIBLE_DEVICES": "",
                   "PYTHONDONTWRITEBYTECODE": "1"}

    def inside(self, *command, mounts=()):
        env = {**self.env, "PATH": f"{self.place}/bin:/usr/bin:/bin", "HOME": "/tmp"}
        return outcome_of(inside(self.root, command, env, mounts=[*self.mounts, *mounts]))

    def test_a_script_alone_and_with_two_workers_has_the_weights_of_the_build(self):
        build = {**os.environ, **self.env, "PYTHONPATH": str(BIN / "python")}
        text = succeed([self.models / "bin/python", SCRIPT, *WORDS], env=build)
        weights = re.search(r"weights_sha256 \w{64}", text)[0]
        code, text = self.inside("python", SCRIPT, *WORDS)
        self.assertEqual(code, 0, text[-3000:])
        self.assertIn(weights, text)
        runs = self.scratch / "runs"
        runs.mkdir()
        code, text = self.inside("lockstep", "run", SCRIPT, "--workers", "2", "--run-dir", "/runs/two",
                                 "--", *WORDS, mounts=[(runs, "runs")])
        self.assertEqual(code, 0, text[-3000:])
        self.assertIn(weights.split()[1], (runs / "two/summary.json").read_text())

    def test_it_trusts_whom_another_distribution_trusts(self):
        trust = self.scratch / "trust"
        trust.mkdir()
        with RangeServer(synthetic_dataset(self.scratch / "far")) as server:
            server.write_manifest()
            certificate = server.encrypt(self.scratch)
            inspect = ["lockstep", "data", "inspect", server.url, "--cache-dir", "/tmp/cache"]
            self.assert_fails(self.inside(*inspect), 66, names=server.url, says="certificate")
            shutil.copy(certificate, trust / "ca-bundle.crt")
            code, text = self.inside(*inspect, mounts=[(trust, "etc/pki/tls/certs")])  # as in Fedora
        self.assertEqual(code, 0, text[-3000:])

    def test_a_job_of_the_program_that_it_has_not_is_refused_by_name(self):
        job = self.job("/data", model={"name": "mlp"})
        ended = self.inside("lockstep", "run", "/job/job.yaml", "--run-dir", "/tmp/run",
                            mounts=[(self.small_data(), "data"), (job.parent, "job")])
        self.assert_fails(ended, 78, names="lockstep-worker", says="wheel", advises=["build", "script"])

    def test_its_files_are_those_of_its_record_and_its_name_says_where_it_runs(self):
        self.assertRegex(wheel().name, r"^lockstep-[\d.]+-py3-none-manylinux_2_35_\w+\.whl$")
        missing = succeed([self.place / "bin/python", "-c", "import importlib.metadata, pathlib\n"
                           "for file in importlib.metadata.files('lockstep'):\n"
                           "    if not pathlib.Path(file.locate()).exists(): print(file)"])
        self.assertEqual(missing, "")


if __name__ == "__main__":
    unittest.main()
