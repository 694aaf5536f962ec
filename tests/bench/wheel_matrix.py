#!/usr/bin/env python3
"""Lockstep's wheel with several Pythons and releases of torch, each in a new environment.

    deploy/wheel.py && tests/bench/wheel_matrix.py 3.10:2.13.0 3.13:2.15.0 [--wheels DIR]

Installs torch without the 3 GB of CUDA libraries that it names, but with CUDA's runtime and
profiler, and stand-ins for the others, as for the tests (deploy/shell/models.sh). Trains a small
script alone and with two workers, and prints a row for each pair. Two workers must have the weights
of the script alone.

--wheels DIR   where `pip download` has put torch's wheels; without it pip downloads 540 MB each
--import       measures `import lockstep` on top of `import torch`, 9 times each in turn
"""
import argparse
import importlib.metadata
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
SCRIPT = ROOT / "tests/python/scripts/train.py"
SHELL = ROOT / "deploy/shell"


class Failure(Exception):
    pass


def output_of(command, **more):
    done = subprocess.run([os.fspath(word) for word in command], text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False, **more)
    if done.returncode != 0:
        raise Failure(f"{' '.join(map(os.fspath, command))} ended with {done.returncode}: "
                      f"{done.stdout[-1500:]}")
    return done.stdout


def interpreter(version):
    pyenv = sorted(pathlib.Path.home().glob(f".pyenv/versions/{version}.*/bin/python{version}"))
    for path in filter(None, [*pyenv, shutil.which(f"python{version}")]):
        return path
    raise Failure(f"there is no Python {version}")


class Environment:
    def __init__(self, place, python, torch, args):
        self.place, self.python = place, place / "bin/python"
        output_of([python, "-m", "venv", place])
        self.pip("--no-deps", f"torch=={torch}", *(["--no-index", "--find-links", args.wheels]
                                                  if args.wheels else []))
        site, = place.glob("lib/python3*/site-packages")
        needs = importlib.metadata.Distribution.at(next(site.glob("torch-*.dist-info"))).requires
        self.pip(*self.wanted(needs))
        self.pip("--no-deps", args.wheel)
        self.env = {**os.environ, "CUDA_VISIBLE_DEVICES": "", "PYTHONNOUSERSITE": "1",
                    "LD_LIBRARY_PATH": f"{place}/stand-ins"}
        self.env.pop("PYTHONPATH", None)
        scripts = " && ".join(f". {SHELL}/{name}.sh" for name in ("common", "environments", "torch", "models"))
        output_of(["bash", "-c", f"{scripts} && make_stand_ins {site}/torch {place}/stand-ins"])

    def pip(self, *words):
        output_of([self.python, "-m", "pip", "install", "--quiet", "--no-cache-dir", "--no-compile",
                   "--disable-pip-version-check", *words])

    @staticmethod
    def wanted(needs):
        """torch's requirements without Triton and CUDA's libraries, but with runtime and
        profiler."""
        found = ["numpy"]
        for need in needs:
            name, _, marker = need.partition(";")
            toolkit = re.fullmatch(r"cuda-toolkit\[.*\](==\S+)\s*", name)
            if toolkit:
                found.append(f"cuda-toolkit[cudart,cupti]{toolkit[1]}")
            elif "extra ==" not in marker and not re.match(
                    r"triton|cuda-|nvidia-(?!cuda-(runtime|cupti))", name):
                found.append(need)
        return found

    def weights_alone(self, model, directory):
        text = output_of([self.python, SCRIPT, model, "fp32", "1"], env=self.env, cwd=directory)
        return re.search(r"weights_sha256 (\w{64})", text)[1]

    def weights_of_two(self, model, directory):
        run = pathlib.Path(directory) / f"run-{model}"
        output_of([self.place / "bin/lockstep", "run", SCRIPT, "--workers", "2", "--run-dir", run, "--",
                   model, "fp32", "1"], env=self.env, cwd=directory)
        return re.search(r'"weights_sha256":\s*"(\w{64})"', (run / "summary.json").read_text())[1]

    def import_s(self, words):
        begin = time.monotonic()
        output_of([self.python, "-c", words], env=self.env)
        return time.monotonic() - begin


def try_pair(pair, args):
    version, _, torch = pair.partition(":")
    with tempfile.TemporaryDirectory(dir=args.scratch) as scratch:
        environment = Environment(pathlib.Path(scratch) / "place", interpreter(version), torch, args)
        cells = [output_of([environment.python, "-c",
                            "import sys, torch; print(sys.version.split()[0], '|', torch.__version__)"],
                           env=environment.env).strip()]
        for model in args.models:
            alone = environment.weights_alone(model, scratch)
            two = environment.weights_of_two(model, scratch)
            cells.append(alone[:12] if alone == two else f"{alone[:12]}, two workers {two[:12]}")
        print("| " + " | ".join(cells) + " |", flush=True)
        if args.measure_import:
            taken = {"import torch": [], "import torch, lockstep": []}
            for _ in range(9):
                for words, seen in taken.items():
                    seen.append(environment.import_s(words))
            for words, seen in taken.items():
                print(f"{words}: {statistics.median(seen):.3f} s ({min(seen):.3f} to {max(seen):.3f})")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("pairs", nargs="+", metavar="PYTHON:TORCH")
    parser.add_argument("--wheel", type=pathlib.Path, help="Lockstep's (the newest in dist)")
    parser.add_argument("--wheels", type=pathlib.Path)
    parser.add_argument("--models", type=lambda text: text.split(","), default=["cnn", "gpt"],
                        help="of the script: mlp, cnn, gpt")
    parser.add_argument("--scratch", help="where environments are made, 2 GB each")
    parser.add_argument("--import", dest="measure_import", action="store_true")
    args = parser.parse_args()
    args.wheel = args.wheel or max((ROOT / "dist").glob("lockstep-*.whl"),
                                   key=lambda path: path.stat().st_mtime)
    print("| Python | torch | " + " | ".join(args.models) + " |\n|" + "---|" * (len(args.models) + 2), flush=True)
    failed = 0
    for pair in args.pairs:
        try:
            try_pair(pair, args)
        except Failure as why:
            failed += 1
            print(f"{pair}: {why}", file=sys.stderr, flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
