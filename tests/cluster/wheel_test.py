"""Lockstep's wheel (deploy/wheel.py): every Python from 3.10 installs it; and where nothing else of ours is
installed, its programs and its package train with the weights of the build that it was made of."""
import functools
import json
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
QUICKSTART = ROOT / "deploy/examples/fashion_mnist_cnn.yaml"
IMAGES = pathlib.Path("/usr/share/datasets/fashion-mnist")
MOST_BYTES = 40e6
REPOSITORY = "https://example.org/lockstep"
# Prints fields of a METADATA file that is right, as package indexes read it.
READ_METADATA = """
import json, pathlib, sys
from packaging.metadata import Metadata
found = Metadata.from_email(pathlib.Path(sys.argv[1]).read_bytes(), validate=True)
print(json.dumps({"requires": list(map(str, found.requires_dist)), "extras": found.provides_extra,
                  "links": found.project_urls, "readme": found.description,
                  "type": found.description_content_type, "licence": found.license_expression,
                  "licences": found.license_files}))
"""
# A Python, and what every program in C++ expects of the machine.
PACKAGES = ["python3", "libstdc++6"]
STAND_IN = BIN.parent / "tests/liblockstep_slow_slots.so"
FIND_MODULE = ("from lockstep._device import _place; "
               "print('module', _place._module_of({'backend': 'nccl'}))")


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
    """The path of a Python `version` that has pip: from PATH, else from pyenv, else None."""
    pyenv = pathlib.Path(os.environ.get("PYENV_ROOT", pathlib.Path.home() / ".pyenv")) / "versions"
    found = [shutil.which(f"python{version}"), *sorted(pyenv.glob(f"{version}.*/bin/python{version}"))]
    for path in filter(None, found):  # a shim of pyenv may lead nowhere
        if outcome([path, "-c", "import pip, venv"])[0] == 0:
            return path
    return None


def private(what):
    """The Python of an environment that install_deps.sh made from the machine's own."""
    python = installed(f"{what}-python")
    if not python:
        raise AssertionError(f"there is no {what}-python; run deploy/install_deps.sh --for tests")
    return pathlib.Path(python)


@functools.cache
def wheel():
    """With a library in the place of the GPU module, which the preset cuda builds."""
    out = scratch_directory(unittest.addModuleCleanup)
    succeed([sys.executable, ROOT / "deploy/wheel.py", "--build", BIN.parent, "--out", out,
             "--repository", REPOSITORY, "--gpu-module", STAND_IN])
    path, = out.iterdir()
    return path


def install(python, place):
    """Installs the wheel alone in a new environment of `python`."""
    succeed([python, "-m", "venv", "--without-pip", place])
    succeed([python, "-m", "pip", "--python", place / "bin/python", "install", "--quiet", "--no-index",
             "--no-deps", "--disable-pip-version-check", wheel()])


@functools.cache
def environment_of(version):
    """An environment of that Python with the wheel alone, or None without such a Python."""
    python = interpreter(version)
    if python is None:
        return None
    place = scratch_directory(unittest.addModuleCleanup) / version
    install(python, place)
    return place


def package(directory, name, version):
    """A directory for PYTHONPATH, with that package."""
    (directory / name).mkdir(parents=True)
    (directory / name / "__init__.py").write_text("")
    info = directory / f"{name}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    return directory


class Wheel(LockstepTest):
    def test_every_python_installs_it_and_its_programs_run_this_python(self):
        script = self.scratch / "train.py"
        script.write_text("# /// lockstep\n# train: {global_batch: 8, slots: 2, epochs: 1}\n# ///\n"
                          "import lockstep\nlockstep.start()\n")
        for version in PYTHONS:
            with self.subTest(python=version):
                place = environment_of(version)
                if place is None:
                    self.skipTest(f"there is no Python {version}")
                run = [place / "bin/lockstep", "run", script, "--run-dir", self.scratch / f"run-{version}"]
                self.assert_fails(outcome(run), 78, names=str(place / "bin/python"),
                                  advises="pip install torch")
                # `lockstep resolve` gave the job, and the library of the worker took it.
                code, text = outcome([place / "bin/python", script])
                self.assertEqual(code, 1, text)
                self.assertIn("No module named 'torch'", text)

    def test_a_job_wants_the_torch_of_the_build_and_says_so_in_one_sentence(self):
        place = next(filter(None, map(environment_of, PYTHONS)))
        torch = re.search(r"torch==([\d.]+)", self.metadata(place)["requires"][1])[1]
        launcher, = place.glob("lib/python3*/site-packages/lockstep/bin/lockstep-worker")
        run = [place / "bin/lockstep", "run", self.job(self.small_data(), model={"name": "mlp"}),
               "--run-dir", self.scratch / "run"]
        # The working directory is not searched, and no environment of install_deps.sh is there.
        package(self.scratch, "torch", torch)
        env = {**os.environ, "LOCKSTEP_DEPS_DIR": "/nowhere", "LOCKSTEP_PYTHON": str(place / "bin/python")}
        for other, found in ((None, "none"), (f"{torch}.1", f"{torch}.1"), (f"{torch}a0", f"{torch}a0")):
            with self.subTest(found=found):
                if other is not None:
                    env["PYTHONPATH"] = str(package(self.scratch / other, "torch", other))
                ended = outcome(run, env=env, cwd=self.scratch)
                self.assert_fails(ended, 78, names=["lockstep-worker", f"torch {torch}", f"has {found}"],
                                  advises=[f"{place}/bin/python -m pip install torch=={torch}", "script"])
                self.assertEqual(len(ended[1].strip().splitlines()), 1, ended[1])
        for build in ("+cpu", "+cu130"):
            env["PYTHONPATH"] = str(package(self.scratch / build, "torch", torch + build))
            self.assertEqual(outcome([launcher, "--find-libraries"], env=env), (0, ""))

    def metadata(self, place):
        info, = place.glob("lib/python3*/site-packages/lockstep-*.dist-info")
        found = json.loads(succeed([private("wheel"), "-c", READ_METADATA, info / "METADATA"]))
        self.assertTrue(all((info / "licenses" / name).exists() for name in found["licences"]), found)
        return found

    def test_an_index_shows_what_it_is_what_it_needs_and_where_its_pages_are(self):
        found = self.metadata(next(filter(None, map(environment_of, PYTHONS))))
        self.assertEqual(found["extras"], ["jobs", "parquet"])
        self.assertRegex(" ".join(found["requires"]), r'^torch>=2\.6 torch==\d\S+; extra == "jobs" '
                                                      r'pyarrow==\d\S+; extra == "parquet"$')
        self.assertEqual((found["type"], found["licence"]), ("text/markdown", "Apache-2.0"))
        self.assertIn("LICENSE", found["licences"])
        for path in re.findall(rf"\]\({REPOSITORY}/blob/main/(\S+)\)", found["readme"]):
            self.assertTrue((ROOT / path).exists(), path)
        self.assertNotRegex(found["readme"], r"\]\((?!https:)|@\w+@")
        self.assertEqual(found["links"]["Repository"], REPOSITORY)
        self.assertLess(wheel().stat().st_size, MOST_BYTES)

    def test_mypy_checks_a_users_script_by_the_types_of_the_package(self):
        place = next(filter(None, map(environment_of, reversed(PYTHONS))))
        succeed([private("mypy"), "-m", "mypy", "--strict", "--cache-dir", os.devnull, "--python-executable",
                 place / "bin/python",  # without torch, which takes ten seconds to read
                 "--disable-error-code", "import-not-found", "--allow-subclassing-any",
                 SCRIPT.with_name("typed_train.py")])


class CleanRoot(LockstepTest):
    """A root with Python and torch, and nothing else of ours."""

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
        cls.mounts = [(path, str(path)[1:])
                      for path in (cls.place, cls.models, torch, SCRIPT.parent, IMAGES, QUICKSTART.parent)]
        cls.env = {"LD_LIBRARY_PATH": str(cls.models / "stand-ins"), "CUDA_VISIBLE_DEVICES": "",
                   "PYTHONDONTWRITEBYTECODE": "1"}

    def inside(self, *command, mounts=()):
        env = {**self.env, "PATH": f"{self.place}/bin:/usr/bin:/bin", "HOME": "/tmp"}
        return outcome_of(inside(self.root, command, env, mounts=[*self.mounts, *mounts]))

    def test_the_package_finds_its_gpu_module_and_it_loads(self):
        code, text = self.inside("python", "-c", FIND_MODULE)
        self.assertEqual(code, 0, text[-3000:])
        module = re.search(r"^module (\S+/lockstep/liblockstep-cuda\.so)$", text, re.M)[1]
        code, text = self.inside("python", "-c", f"import ctypes; ctypes.CDLL({module!r})")
        self.assertEqual(code, 0, text[-3000:])

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

    def test_the_quickstarts_job_has_the_weights_of_the_build_alone_and_with_two_workers(self):
        job = [QUICKSTART, "train.max_steps=3"]
        build = self.finish(*job, "--workers", 1).summary()["weights_sha256"]
        runs = self.scratch / "runs"
        runs.mkdir()
        for workers in ("1", "2"):
            code, text = self.inside("lockstep", "run", *job, "--workers", workers, "--run-dir",
                                     f"/runs/{workers}", mounts=[(runs, "runs")])
            self.assertEqual(code, 0, text[-3000:])
            self.assertEqual(json.loads((runs / workers / "summary.json").read_text())["weights_sha256"],
                             build)
        code, text = self.inside("lockstep", "replay", "/runs/2", "--step", "2", mounts=[(runs, "runs")])
        self.assertEqual(code, 0, text[-3000:])

    def test_its_files_are_those_of_its_record_and_its_name_says_where_it_runs(self):
        self.assertRegex(wheel().name, r"^lockstep-[\d.]+-py3-none-manylinux_2_35_\w+\.whl$")
        missing = succeed([self.place / "bin/python", "-c", "import importlib.metadata, pathlib\n"
                           "for file in importlib.metadata.files('lockstep'):\n"
                           "    if not pathlib.Path(file.locate()).exists(): print(file)"])
        self.assertEqual(missing, "")


if __name__ == "__main__":
    unittest.main()
