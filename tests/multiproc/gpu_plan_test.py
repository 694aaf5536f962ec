"""The time that the GPU suite plans with (tests/gpu, --plan, --minutes 9): programs that take as long
as the plan guesses all run and end in time, and programs that never end cost no more. The programs
and the clock are made up, so the test waits for nothing. GPU.md has the suite's predictions."""
import pathlib
import re
import subprocess
import sys
import threading
import unittest
from unittest import mock

from harness import ROOT, scratch_directory

sys.path.insert(0, str(ROOT / "tests/gpu"))
import budget  # noqa: E402
import checks  # noqa: E402
import measures  # noqa: E402
import plan  # noqa: E402
import predictions  # noqa: E402
from running import END_S, Ended  # noqa: E402

MINUTES = 9
MOST_MINUTES_OF_A_RUN = 10
NEVER = 10**9
GTESTS = ("test_gpu", "test_gpu_abort", "test_gpu_buckets")
PASSED = {"gtest": "[ RUN      ] A.Passes\n[       OK ] A.Passes (1 ms)\n",
          "unittest": "Ran 1 test in 1.000s\n\nOK\n"}

class MadeUpTime:
    """A clock that advances when every thread at work waits for a program to end."""

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


def name_of(command):
    if "unittest" not in command:
        name = pathlib.Path(command[0]).name
        return checks.NAMES.get(name, name)
    module, _, method = command[-1].split(".")
    return f"{module}: {method[5:].replace('_', ' ')}"


class GpuPlan(unittest.TestCase):
    def setUp(self):
        self.out = scratch_directory(self.addCleanup)
        for name in GTESTS:
            (self.out / name).touch()
        self.all = checks.gtest_checks(self.out, self.out) + checks.unittest_checks()
        self.needs = {check.name: check.needs_gpus for check in self.all}

    def guessed(self, gpus):
        """The seconds that a command takes."""
        def seconds(command):
            if "--device" in command:
                return plan.side_seconds(command)
            return plan.check_seconds(name_of(command), self.needs[name_of(command)], gpus)
        return seconds

    def check(self, time, programs, left, gpus):
        """Checks as suite.run() does. Returns the record of each check."""
        told, together = [], [check for check in self.all if not check.alone]
        with mock.patch("os.cpu_count", lambda: plan.CORES):
            at_once = min(checks.default_at_once("cuda", gpus), len(together))
        time.set_at_work(at_once)

        def tell(check):
            told.append(check)
            time.set_at_work(max(1, min(at_once, len(together) - len(told))))

        checks.Checking(programs, left, self.out, "cuda", gpus, self.out, lambda _: None,
                        tell).run(self.all, at_once)
        return told

    def measure(self, programs, time_left, gpus, rounds):
        answers = []
        with mock.patch.object(measures, "write_images"), \
                mock.patch.object(measures, "write_tokens"):
            measures.Measuring(programs, time_left, self.out, self.out, "cuda", lambda _: None,
                               answers.append, gpus).run(measures.workloads("cuda", gpus), rounds)
        return answers

    def suite(self, expected, takes_to_end=0, rounds=5, gpus=1):
        """Both halves in one run: (checks, answers, programs, seconds in all)."""
        time = MadeUpTime()
        time_left = budget.Budget(MINUTES, now=time)
        programs = Programs(time, expected, takes_to_end)
        told = self.check(time, programs, lambda: time_left.left(budget.CHECKS_SHARE), gpus)
        self.assertLessEqual(time.now, MINUTES * 60 * budget.CHECKS_SHARE + takes_to_end)
        answers = self.measure(programs, time_left, gpus, rounds)
        return told, answers, programs, time.now

    def assert_all_checked(self, told, programs):
        self.assertEqual({check["result"] for check in told}, {"ok"}, told)
        self.assertEqual(len(told), len(self.all))
        # A check that takes half as long again is not ended yet.
        for taken, limit in programs.limits[:len(self.all)]:
            self.assertLessEqual(1.5 * taken, limit)

    def assert_all_measured(self, answers, sides):
        self.assertEqual(len([a for a in answers if a["round"] == 1]), sides)
        without = [a for a in answers if "samples_per_second" not in a and "seconds" not in a]
        self.assertEqual(without, [], "the suite's time was short")

    def test_there_is_a_guess_of_the_time_of_every_check(self):
        self.assertEqual(sorted(check.name for check in self.all), sorted(plan.CHECKS_S))

    def test_nine_minutes_are_enough_for_one_gpu(self):
        told, answers, programs, seconds = self.suite(self.guessed(1))
        self.assert_all_checked(told, programs)
        self.assert_all_measured(answers, 13)  # the peak, five sides of two works, two starts
        self.assertLessEqual(seconds, MINUTES * 60 - budget.RESERVE_S)

    def test_the_runs_of_the_plan_are_enough_for_all_that_it_lists(self):
        for gpus, sides in ((1, 13), (2, 16), (4, 16), (8, 16)):
            with self.subTest(gpus=gpus):
                (correct, minutes), (fast, fast_minutes) = plan.runs(gpus)
                self.assertEqual((correct, fast), ("--only correct", "--only fast"))
                self.assertLessEqual(max(minutes, fast_minutes), MOST_MINUTES_OF_A_RUN)
                time = MadeUpTime()
                programs = Programs(time, self.guessed(gpus))
                told = self.check(time, programs, budget.Budget(minutes, now=time).left, gpus)
                self.assert_all_checked(told, programs)
                time = MadeUpTime()
                answers = self.measure(Programs(time, self.guessed(gpus)),
                                       budget.Budget(fast_minutes, now=time), gpus, rounds=5)
                self.assert_all_measured(answers, sides)

    def test_one_gpu_needs_two_runs_of_twelve_minutes_in_all(self):
        self.assertLessEqual(sum(minutes for _, minutes in plan.runs(1)), 12)
        self.assertEqual(len(plan.runs(1)), 2)

    def test_the_plan_names_each_check_and_figure_with_its_prediction(self):
        for gpus in (1, 8):
            with self.subTest(gpus=gpus):
                said = "\n".join(plan.lines(self.all, gpus))
                for check in self.all:
                    applies = check.needs_gpus <= gpus
                    word = "ok" if applies else "not applicable"
                    self.assertIn(f"| {check.name} | {word} |", said)
                self.assertIn("--only correct --minutes", said)
                self.assertIn(f"| {predictions.GPT2} | ours | "
                              f"{predictions.of_figure(predictions.GPT2, 'ours')} |", said)
                self.assertEqual("PyTorch DDP, torchrun" in said, gpus == 8)
                self.assertEqual(f"| {predictions.GPT2_ON_8} | ours | 3," in said, gpus == 8)

    def test_a_clone_plans_every_program_that_a_bundle_has(self):
        built = (ROOT / "tests/gpu/CMakeLists.txt").read_text()
        self.assertEqual(set(checks.PROGRAMS), set(re.findall(r"\btest_gpu\w*", built)))
        done = subprocess.run([ROOT / "tests/gpu/run.sh", "--plan", "--gpus", "8"],
                              capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        for program in checks.gtest_checks(self.out, self.out, checks.PROGRAMS):
            self.assertIn(f"| {program.name} | ok |", done.stdout)

    def test_every_prediction_is_of_a_figure_that_the_suite_takes(self):
        measured = set()
        for gpus in (1, 8):
            measuring = measures.Measuring(None, None, self.out, self.out, "cuda", None, None, gpus)
            measured |= {(side.work, side.side)
                         for side in measuring.sides(measures.workloads("cuda", gpus))}
        self.assertLessEqual(set(predictions.FIGURES), measured)

    def test_the_page_repeats_the_predictions(self):
        page = (ROOT / "worker/cuda/GPU.md").read_text()
        section = page.split("\n## What is predicted\n")[1].split("\n## ")[0]
        self.assertEqual([line for line in section.splitlines() if line.startswith("|")],
                         [line for line in predictions.table() if line])

    def test_what_never_ends_leaves_time_for_figures_and_ends_in_time(self):
        told, answers, _, seconds = self.suite(
            lambda command: NEVER if "--device" not in command else plan.side_seconds(command),
            gpus=4)
        self.assertEqual({check["result"] for check in told}, {"FAILED", "NOT RUN"})
        measured = [answer for answer in answers if "samples_per_second" in answer]
        self.assertIn("ours", {answer["side"] for answer in measured})
        self.assertLessEqual(seconds, MINUTES * 60)

    def test_what_even_the_kernel_can_hardly_end_ends_in_time(self):
        for rounds in (1, 5):
            *_, seconds = self.suite(lambda _: NEVER, takes_to_end=END_S, rounds=rounds, gpus=4)
            self.assertLess(seconds, MINUTES * 60)


if __name__ == "__main__":
    unittest.main()
