"""The time that the GPU suite plans with (tests/gpu, --minutes 9): programs that take as long as is
expected of them all run and end in time, and programs that never end cost no more. Nothing waits:
the programs are made up, and so is the clock."""
import pathlib
import sys
import threading
import unittest
from unittest import mock

from harness import ROOT, scratch_directory

sys.path.insert(0, str(ROOT / "tests/gpu"))
import budget  # noqa: E402
import checks  # noqa: E402
import measures  # noqa: E402
from running import END_S, Ended  # noqa: E402

MINUTES = 9
NEVER = 10**9
GTESTS = ("test_gpu", "test_gpu_abort")
PASSED = {"gtest": "[ RUN      ] A.Passes\n[       OK ] A.Passes (1 ms)\n",
          "unittest": "Ran 1 test in 1.000s\n\nOK\n"}

CORES = 16
# Seconds on H100s with so many cores, several checks at a time. Guesses: nobody has measured. A run of a
# small model takes 15 s, most of it to load LibTorch's and CUDA's libraries.
RUN_S = 15
EXPECTED_S = {
    "test_gpu": 120, "test_gpu_abort": 30,
    "processes: any number of workers gives the same weights": 3 * RUN_S,
    "processes: nccl gives the weights of the host": 2 * RUN_S,
    "processes: slots as graphs give the weights of eager slots": 4 * RUN_S,
    "processes: half precision too": 4 * RUN_S,
    "processes: a killed worker changes nothing": 2 * RUN_S + 10,
    "processes: a resume with other workers changes nothing": 3 * RUN_S,
    "processes: the losses are those of the cpu to rounding": 2 * RUN_S,
    "foreign_models: a torchscript file trains on tokens": 4 * RUN_S,
    "foreign_models: a torchscript file trains on images": 3 * RUN_S,
    "foreign_models: a plug in trains": 4 * RUN_S,
    "stuck_kernel: a worker in a kernel without end is put out": 2 * RUN_S + 30,
    "nccl_worlds: every size of the world gives the weights of the host": 4 * RUN_S,  # of 4 GPUs
    "nccl_worlds: a kill while the world is made": 2 * RUN_S + 20,
    "nccl_worlds: a kill in the first step": 2 * RUN_S + 20,
    "nccl_worlds: a kill in steady state": 2 * RUN_S + 20,
    "nccl_worlds: a planned switch and a kill within one": 2 * RUN_S + 30,
}
SIDE_EXPECTED_S = {"--matmul": 10, "--compile": 65, "gpt2": 15, "resnet50": 18}


class MadeUpTime:
    """A clock that goes on when everybody who is at work waits for a program to end."""

    def __init__(self):
        self.now, self.at_work = 0.0, 1
        self.ends = []
        self.changed = threading.Condition()

    def __call__(self):
        return self.now

    def set_at_work(self, count):
        with self.changed:
            self.at_work = count
            self.changed.notify_all()

    def wait(self, seconds):
        with self.changed:
            end = self.now + seconds
            self.ends.append(end)
            self.changed.notify_all()
            while self.now < end:
                if len(self.ends) == self.at_work and min(self.ends) > self.now:
                    self.now = min(self.ends)
                    self.changed.notify_all()
                else:
                    self.changed.wait()
            self.ends.remove(end)


class Programs:
    """Stands in for running.Runner. `expected(command)`: seconds."""

    def __init__(self, time, expected, takes_to_end=0):
        self.time, self.expected, self.takes_to_end = time, expected, takes_to_end
        self.limits = []

    def run(self, command, limit_s, log, env=None, cwd=None):
        seconds = self.expected([str(word) for word in command])
        self.limits.append((seconds, limit_s))
        if seconds > limit_s:
            self.time.wait(limit_s + self.takes_to_end)
            return Ended(None, limit_s, "")
        self.time.wait(seconds)
        kind = "unittest" if "unittest" in map(str, command) else "gtest"
        return Ended(0, seconds, PASSED[kind] + '{"samples_per_second": 1.0, "tflops": 1.0}\n')


def check_seconds(command, gpus):
    if "unittest" not in command:
        return EXPECTED_S[pathlib.Path(command[0]).name]
    module, _, method = command[-1].split(".")
    if module == "nccl_worlds" and gpus == 1:
        return 5  # to say so
    return EXPECTED_S[f"{module}: {method[5:].replace('_', ' ')}"]


def seconds_on(gpus):
    return lambda command: (side_seconds(command) if "--device" in command
                            else check_seconds(command, gpus))


def side_seconds(command):
    return next(seconds for word, seconds in SIDE_EXPECTED_S.items() if word in command)


class GpuPlan(unittest.TestCase):
    def setUp(self):
        self.out = scratch_directory(self.addCleanup)
        for name in GTESTS:
            (self.out / name).touch()
        self.all = checks.gtest_checks(self.out) + checks.unittest_checks()

    def suite(self, expected, takes_to_end=0, rounds=5, gpus=4):
        """As suite.run() does: (checks, answers, programs, seconds in all)."""
        time = MadeUpTime()
        plan = budget.Budget(MINUTES, now=time)
        programs = Programs(time, expected, takes_to_end)
        told, answers = [], []
        with mock.patch("os.cpu_count", lambda: CORES):
            at_once = min(checks.default_at_once("cuda", gpus), len(self.all))
        time.set_at_work(at_once)

        def tell(check):
            told.append(check)
            time.set_at_work(min(at_once, len(self.all) - len(told)) or 1)

        checks.Checking(programs, lambda: plan.left(budget.CHECKS_SHARE), self.out, "cuda", gpus,
                        self.out, lambda _: None, tell).run(self.all, at_once)
        self.assertLessEqual(time.now, MINUTES * 60 * budget.CHECKS_SHARE + takes_to_end)
        with mock.patch.object(measures, "write_images"), \
                mock.patch.object(measures, "write_tokens"):
            measures.Measuring(programs, plan, self.out, self.out, "cuda", lambda _: None,
                               answers.append).run(measures.workloads("cuda"), rounds)
        return told, answers, programs, time.now

    def test_there_is_an_expectation_of_every_check(self):
        self.assertEqual(sorted(check.name for check in self.all), sorted(EXPECTED_S))

    def test_what_takes_as_long_as_expected_all_runs_in_its_time(self):
        for gpus in (1, 2, 4, 8):
            with self.subTest(gpus=gpus):
                told, answers, programs, seconds = self.suite(seconds_on(gpus), gpus=gpus)
                self.assertEqual({check["result"] for check in told}, {"ok"}, told)
                self.assertLessEqual(seconds, MINUTES * 60 - budget.RESERVE_S)
                first = [answer for answer in answers if answer["round"] == 1]
                self.assertEqual(len(first), 11, "the peak, five sides of two works")
                without = [a for a in answers if "samples_per_second" not in a]
                self.assertEqual(without, [], "the suite's time was short")
                # A check that takes half as long again is not ended yet.
                for taken, limit in programs.limits[:len(self.all)]:
                    self.assertLessEqual(1.5 * taken, limit)

    def test_what_never_ends_leaves_time_for_figures_and_ends_in_time(self):
        told, answers, _, seconds = self.suite(
            lambda command: NEVER if "--device" not in command else side_seconds(command))
        self.assertEqual({check["result"] for check in told}, {"FAILED", "NOT RUN"})
        measured = [answer for answer in answers if "samples_per_second" in answer]
        self.assertIn("ours", {answer["side"] for answer in measured})
        self.assertLessEqual(seconds, MINUTES * 60)

    def test_what_even_the_kernel_can_hardly_end_ends_in_time(self):
        for rounds in (1, 5):
            *_, seconds = self.suite(lambda _: NEVER, takes_to_end=END_S, rounds=rounds)
            self.assertLess(seconds, MINUTES * 60)


if __name__ == "__main__":
    unittest.main()
