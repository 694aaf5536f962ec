"""tests/run.sh on a small project of its own, whose tests fail as often as they are told to."""
import pathlib
import shutil
import subprocess
import tempfile
import unittest

from harness import DEADLINE_S, ROOT

LISTS = """cmake_minimum_required(VERSION 3.25)
project(few LANGUAGES NONE)
enable_testing()
"""
# Fails so many times: each run takes one line from the file of failures that are left.
TEST = """#!/bin/sh
echo "this is run $(wc -l < "$1" 2>/dev/null) of $1"
[ -s "$1" ] || exit 0
sed -i 1d "$1"
echo "it failed"
exit 1
"""
PRESETS = """{"version": 6, "configurePresets": [
  {"name": "release", "binaryDir": "${sourceDir}/build/release"}]}
"""


class RunScript(unittest.TestCase):
    def setUp(self):
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="lockstep-test-"))
        self.addCleanup(shutil.rmtree, self.root)
        for path in ("tests/run.sh", "tests/harness/ctest_report.py", "deploy/shell/common.sh"):
            copy = self.root / path
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / path, copy)
        self.program("deploy/install_deps.sh", "#!/bin/sh\n")
        self.program("fails", TEST)
        (self.root / "CMakePresets.json").write_text(PRESETS)

    def program(self, name, text):
        path = self.root / name
        path.write_text(text)
        path.chmod(0o755)

    def run_tests(self, label="multiproc", **times):
        """`times`: how often each test fails. Returns the exit code and the lines."""
        lists = LISTS
        for name, count in times.items():
            (self.root / name).write_text("fails\n" * count)
            lists += (f"add_test(NAME {label}.{name} COMMAND ${{CMAKE_SOURCE_DIR}}/fails "
                      f"${{CMAKE_SOURCE_DIR}}/{name})\n"
                      f"set_tests_properties({label}.{name} PROPERTIES LABELS {label})\n")
        (self.root / "CMakeLists.txt").write_text(lists)
        done = subprocess.run([self.root / "tests/run.sh", "--tier", label], capture_output=True,
                              text=True, timeout=DEADLINE_S)
        return done.returncode, (done.stdout + done.stderr).strip().splitlines()

    def left(self, name):
        """The number of runs that would still fail."""
        return (self.root / name).read_text().count("\n")

    def test_one_that_fails_once_is_flaky_and_the_run_passes(self):
        code, lines = self.run_tests(well=0, once=1)
        self.assertEqual(code, 0, lines)
        self.assertEqual(lines[-2:], ["2 passed, 0 failed, 1 flaky", "2 passed, 0 failed"])
        self.assertTrue(any("FLAKY multiproc.once" in line for line in lines), lines)
        log = (self.root / "build/logs/flaky/multiproc.once.log").read_text()
        self.assertEqual(log.count("it failed"), 1, "what the first run said is kept")
        self.assertEqual(log.count("this is run"), 2)

    def test_one_that_fails_twice_fails_the_run_and_is_not_tried_a_third_time(self):
        code, lines = self.run_tests(well=0, twice=3)
        self.assertEqual(code, 1, lines)
        self.assertEqual(lines[-1], "1 passed, 1 failed")
        self.assertTrue(any("FAILED: multiproc.twice" in line for line in lines), lines)
        self.assertEqual(self.left("twice"), 1)
        self.assertEqual(list((self.root / "build/logs/flaky").iterdir()), [])

    def test_three_flaky_tests_fail_the_run_and_two_do_not(self):
        code, lines = self.run_tests(one=1, two=1)
        self.assertEqual((code, lines[-1]), (0, "2 passed, 0 failed"), lines)
        code, lines = self.run_tests(one=1, two=1, three=1, well=0)
        self.assertEqual(code, 1, lines)
        self.assertEqual(lines[-2:], ["1 passed, 3 failed, 3 flaky", "1 passed, 3 failed"])

    def test_where_most_fail_none_runs_again(self):
        code, lines = self.run_tests(**{f"test{i}": 1 for i in range(11)})
        self.assertEqual((code, lines[-2]), (1, "0 passed, 11 failed, 0 flaky"), lines)

    def test_no_other_test_runs_twice(self):
        code, lines = self.run_tests(label="golden", well=0, once=1)
        self.assertEqual((code, lines[-1]), (1, "1 passed, 1 failed"), lines)
        code, lines = self.run_tests(label="cluster", well=0, once=1)
        self.assertEqual((code, lines[-1]), (0, "2 passed, 0 failed"), lines)


if __name__ == "__main__":
    unittest.main()
