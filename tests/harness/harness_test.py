"""The harness itself: what a busy machine and the shell that starts the tests must not change."""
import contextlib
import os
import pathlib
import signal
import socket
import subprocess
import sys
import unittest

import harness
from harness import DEADLINE_S, LockstepTest, Run
from patch_of_code import code_of
from ports import held_port
from preloaded import run_code

HERE = pathlib.Path(__file__).resolve().parent
IGNORED = (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGTERM)
# A child of the harness prints which signals it ignores, in hexadecimal digits.
CHILD = "import harness, subprocess; subprocess.run(['grep', '^SigIgn', '/proc/self/status'])"
INTERRUPTED = "import harness, os, signal; os.kill(os.getpid(), signal.SIGINT)"


def ignoring_signals():
    for number in IGNORED:
        signal.signal(number, signal.SIG_IGN)


class InheritedSignals(unittest.TestCase):
    def start(self, program):
        return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True,
                              timeout=DEADLINE_S, preexec_fn=ignoring_signals,
                              env={**os.environ, "PYTHONPATH": str(HERE)})

    def test_what_the_shell_ignores_the_processes_of_a_test_do_not(self):
        said = self.start(CHILD).stdout
        ignored = int(said.split()[1], 16)
        self.assertEqual([number for number in IGNORED if ignored >> (number - 1) & 1], [])

    def test_ctrl_c_ends_the_tests_all_the_same(self):
        self.assertIn("KeyboardInterrupt", self.start(INTERRUPTED).stderr)


class Asked(Run):
    """A run that gives these answers, one a question. An error is raised."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.process = subprocess.Popen(["sleep", "infinity"])
        self.output = pathlib.Path(os.devnull)

    def ask(self):
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def end(self):
        self.process.kill()
        self.process.wait()


def members(*pids):
    return {"members": [{"pid": pid, "rank": rank} for rank, pid in enumerate(pids)]}


class Asking(LockstepTest):
    def asked(self, *answers):
        run = Asked(*answers)
        self.addCleanup(run.end)
        return run

    def test_a_status_that_takes_too_long_is_asked_for_again(self):
        late = subprocess.TimeoutExpired("lockstep status", 30)
        run = self.asked(late, {"step": 7}, late, members(3))
        self.assertEqual(run.wait_for(lambda: run.ask()["step"], "a step"), 7)
        self.assertEqual(run.workers(), [3])

    def test_silence_is_not_a_status_without_workers(self):
        run = self.asked({}, members(3, 4), {}, members(3), members(3, 4))
        self.assertEqual(run.workers(), [3, 4])
        self.assertEqual(run.worker(1), 4)
        self.assertEqual(run.answers, [])

    def test_a_run_that_has_ended_is_not_waited_for(self):
        run = self.asked(*[{}] * 100)
        run.end()
        with self.assertRaises(AssertionError):
            run.status()

    def test_however_long_asking_takes_the_next_question_comes_soon(self):
        pauses, now = [], [0.0]

        class Clock:
            """Each question takes three seconds."""
            monotonic = staticmethod(lambda: now.__setitem__(0, now[0] + 3) or now[0])
            sleep = staticmethod(pauses.append)

        run = self.asked({}, {}, {"step": 1})
        true_time, harness.time = harness.time, Clock
        try:
            run.status()
        finally:
            harness.time = true_time
        self.assertEqual(len(pauses), 2)
        self.assertLessEqual(max(pauses), 0.5)


class HeldPorts(unittest.TestCase):
    def test_a_server_can_bind_it_and_no_other_program_is_given_it(self):
        with contextlib.ExitStack() as held:
            port = held_port(held.callback)
            for _ in range(100):  # the kernel gives the ports that it has left
                with socket.socket() as other:
                    other.bind(("127.0.0.1", 0))
                    self.assertNotEqual(other.getsockname()[1], port)
            with self.assertRaises(OSError), socket.socket() as other:
                other.bind(("127.0.0.1", port))
            with socket.socket() as server:
                server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                server.bind(("127.0.0.1", port))
                server.listen()


class PatchOfCode(unittest.TestCase):
    def test_what_only_moved_or_only_changed_its_includes_is_left_out(self):
        moved = ["diff --git a/x.cc b/y.cc\n", "rename from x.cc\n", "rename to y.cc\n"]
        names = ["diff --git a/a.cc b/b.cc\n", "--- a/a.cc\n", "+++ b/b.cc\n"]
        include = ["@@ -1 +1 @@\n", '-#include "a.h"\n', '+#include "b.h"\n', "+  // why\n"]
        code = ["@@ -9,0 +10,2 @@\n", "+\n", "+  return ++at;\n"]
        gone = ["@@ -20 +21,0 @@\n", "-  return 7;\n"]
        self.assertEqual(list(code_of(moved + names + include)), [])
        self.assertEqual(list(code_of(moved + names + include + code + gone + moved)), names + code)
        self.assertEqual(list(code_of(names + code + names + code)), 2 * (names + code))
        self.assertEqual(list(code_of(names + gone)), [])
        self.assertEqual(list(code_of(names + gone + include, with_removals=True)), names + gone)
        comment = ["@@ -3 +3,2 @@\n", '-  f("//");  // why\n', "+  // because\n", '+  f("//");\n']
        literal = ["@@ -7 +7 @@\n", '-  f("//a");\n', '+  f("//b");\n']
        self.assertEqual(list(code_of(names + comment, with_removals=True)), [])
        self.assertEqual(list(code_of(names + comment + literal)), names + literal)


class Preloaded(unittest.TestCase):
    def run_code(self, code):
        done = run_code(sys.executable, code, HERE, ("json",))
        return done.returncode, done.stdout, done.stderr.strip().splitlines()[-1:]

    def test_programs_end_as_in_a_python_of_their_own(self):
        self.assertEqual(self.run_code("import os\nname = 1\nprint(os.getcwd(), __name__)"),
                         (0, f"{HERE} __main__\n", []))
        self.assertEqual(self.run_code("print('before')\nname"),
                         (1, "before\n", ["NameError: name 'name' is not defined"]))
        self.assertEqual(self.run_code("import sys\nsys.exit(3)"), (3, "", []))
        self.assertEqual(self.run_code("import os\nos.abort()"), (-6, "", []))


if __name__ == "__main__":
    unittest.main()
