"""The checks of the suite: the GoogleTest programs, and each test with real processes by itself, so
that each has its row and its time-out."""
import ast
import concurrent.futures
import dataclasses
import os
import pathlib
import re
import sys

import predictions
from results import NOT_RUN
from running import Runner
from verdicts import FAILED, judge

HERE = pathlib.Path(__file__).resolve().parent
# In the order of their worth, in case the time is short.
PROCESSES = ("processes", "foreign_models", "stuck_kernel", "nccl_worlds", "nccl_memory")
NEED_SEVERAL_GPUS = {"nccl_worlds", "nccl_memory", "test_gpu_buckets"}
# Other checks on the same GPU would disturb their measurements.
ALONE = {"nccl_memory"}
# A check's name, for a program that shows one thing.
NAMES = {"test_gpu_buckets": "nccl: a bucket of 64 MiB and a cut has the host's bits"}
PROGRAMS = ("test_gpu", "test_gpu_abort", "test_gpu_buckets")
LIMIT_S = {"gtest": 240, "unittest": 150}  # a program of GoogleTest has many tests
LEAST_S = 5  # what is left must at least be this, for a check to begin


@dataclasses.dataclass
class Check:
    name: str
    kind: str  # of verdicts.READERS
    command: list
    needs_gpus: int = 1  # with fewer it says "not applicable"
    alone: bool = False  # on the GPUs; comes after all others
    env: dict = dataclasses.field(default_factory=dict)


def gpus_of(name):
    return 2 if name in NEED_SEVERAL_GPUS else 1


def gtest_checks(programs, out, names=None):
    """`out`: the directory of NCCL's log of test_gpu_buckets' worlds. `names`: programs, which need
    not exist; default: those that do."""
    log = {"NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": "INIT,GRAPH,ENV,NET,REG",
           "NCCL_DEBUG_FILE": str(out / "nccl-%h-%p.txt")}
    return [Check(NAMES.get(program.name, program.name), "gtest", [program], gpus_of(program.name),
                  env=log if program.name == "test_gpu_buckets" else {})
            for program in ([programs / name for name in names] if names else
                            sorted(programs.glob("test_gpu*")))]


def unittest_checks(directory=HERE, modules=PROCESSES):
    """A check for every test method. Does not import the files, so that a file that cannot be
    imported fails as a check."""
    checks = []
    for module in modules:
        for node in ast.parse((directory / f"{module}.py").read_text()).body:
            methods = [each.name for each in getattr(node, "body", [])
                       if isinstance(node, ast.ClassDef) and isinstance(each, ast.FunctionDef)
                       and each.name.startswith("test_")]
            checks += [Check(f"{module}: {method[5:].replace('_', ' ')}", "unittest",
                             [sys.executable, "-m", "unittest", "-v",
                              f"{module}.{node.name}.{method}"],
                             gpus_of(module), module in ALONE) for method in methods]
    return checks


class Checking:
    """Runs checks. `left()`: seconds that they may still take together."""

    def __init__(self, runner: Runner, left, out, device, gpus, programs, say, add):
        self.runner, self.left, self.out, self.say, self.add = runner, left, out, say, add
        self.device, self.gpus = device, gpus
        self.env = {"LOCKSTEP_BIN": str(programs), "LOCKSTEP_SUITE_DEVICE": device,
                    "LOCKSTEP_SUITE_GPUS": str(gpus), "PYTHONDONTWRITEBYTECODE": "1",
                    "PYTHONPATH": str(HERE.parent / "harness")}

    def run(self, checks, at_once):
        """Small models leave a GPU idle most of the time, so several checks share it."""
        pool = concurrent.futures.ThreadPoolExecutor(at_once)
        try:
            for done in [pool.submit(self._check, check) for check in checks if not check.alone]:
                done.result()
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
        for check in checks:
            if check.alone:
                self._check(check)

    def _check(self, check):
        left = self.left()
        if left < LEAST_S:
            return self._tell(check, NOT_RUN, "no time left", 0, "")
        log = self.out / (re.sub(r"\W+", "-", check.name) + ".log")
        ended = self.runner.run(check.command, min(LIMIT_S[check.kind], left), log,
                                {**self.env, **check.env}, HERE)
        result, detail = judge(check.kind, ended, has_gpu=self.device == "cuda")
        where = f" ({log})" if result == FAILED else ""
        return self._tell(check, result, detail, ended.seconds, where)

    def _tell(self, check, result, detail, seconds, where):
        self.say(f"  {check.name}: {result}, {detail}{where}  ({seconds:.1f} s)")
        self.add({"name": check.name, "result": result, "detail": detail,
                  "predicted": predictions.of_check(check.needs_gpus, self.gpus),
                  "seconds": round(seconds, 1)})


def default_at_once(device, gpus):
    """Several GPUs have more to check (nccl_worlds), and share the work of it."""
    most = 4 if gpus == 1 else 6
    return min(most, max(1, (os.cpu_count() or 1) // 3)) if device == "cuda" else 1
