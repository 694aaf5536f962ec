"""The suite for machines with a GPU (tests/gpu), in a bundle of programs that hang, crash, skip or
print garbage: it keeps each result, ends each program in time, and passes nothing that failed."""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import textwrap
import time
import unittest

from harness import DEADLINE_S, ROOT, scratch_directory

OURS = ("budget", "checks", "measures", "plan", "predictions", "results", "running", "suite",
        "verdicts")
PASSES = """
print("[ RUN      ] A.Passes")
print("[       OK ] A.Passes (1 ms)")
"""
BENCH = 'print(\'{"samples_per_second": 10.0, "step_us": 5.0, "data_us": 1.0}\')'
PEER = """
import sys
print('{"tflops": 2.0}' if "--matmul" in sys.argv else '{"samples_per_second": 5.0}')
"""


def skips(reason):
    return f"""
print("[ RUN      ] A.Skips")
print("a_test.cc:7: Skipped")
print({reason!r})
print("")
print("[  SKIPPED ] A.Skips (0 ms)")
print("[  SKIPPED ] 1 test, listed below:")
"""


class GpuSuite(unittest.TestCase):
    def setUp(self):
        self.bundle = scratch_directory(self.addCleanup)
        self.out = self.bundle / "results"
        self.gpu = self.bundle / "tests/gpu"
        for directory in (self.gpu, self.bundle / "bin", self.bundle / "path"):
            directory.mkdir(parents=True)
        for name in OURS:
            shutil.copy(ROOT / f"tests/gpu/{name}.py", self.gpu)
        for name in ("processes", "foreign_models", "stuck_kernel", "nccl_worlds", "nccl_memory"):
            self.module(name)
        self.program("path/nvidia-smi", 'print("A GPU, 80 GiB, 580")')
        self.program("bin/bench_train", BENCH)
        (self.gpu / "peer.py").write_text(PEER)

    def program(self, name, body):
        path = self.bundle / name
        path.write_text(f"#!{sys.executable}\n" + textwrap.dedent(body))
        path.chmod(0o755)

    def module(self, name, *methods):
        """A file of real processes, with these test methods."""
        lines = ["import unittest", "class Tests(unittest.TestCase):", "    pass"]
        lines += [line for one in methods for line in textwrap.indent(
            textwrap.dedent(one).strip(), "    ").splitlines()]
        (self.gpu / f"{name}.py").write_text("\n".join(lines) + "\n")

    def start(self, *args):
        env = {**os.environ, "PATH": f"{self.bundle / 'path'}:{os.environ['PATH']}",
               "PYTHONDONTWRITEBYTECODE": "1"}
        run = subprocess.Popen([sys.executable, self.gpu / "suite.py", "--out", self.out, *args],
                               env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.addCleanup(run.stdout.close)
        self.addCleanup(self.end, run)
        return run

    def end(self, run):
        if run.poll() is None:
            run.terminate()  # it ends what it has started
            try:
                run.wait(DEADLINE_S)
            except subprocess.TimeoutExpired:
                run.kill()
                run.wait()

    def suite(self, *args, expect):
        run = self.start(*args)
        said, _ = run.communicate(timeout=DEADLINE_S)
        self.assertEqual(run.returncode, expect, said)
        return said

    def records(self, kind):
        lines = (self.out / "gpu.jsonl").read_text().splitlines()
        return [record[kind] for record in map(json.loads, lines) if kind in record]

    def check(self, name):
        found, = [check for check in self.records("check") if check["name"] == name]
        return found

    def assert_check(self, name, result, says=""):
        check = self.check(name)
        self.assertEqual(check["result"], result, check)
        self.assertIn(says, check["detail"])
        self.assertIn(f"| {name} | {result} |", (self.out / "gpu.md").read_text())

    def test_all_that_passes_is_a_table_with_checks_and_figures(self):
        self.program("bin/test_gpu", PASSES)
        self.module("processes", "def test_a_kill(self): pass")
        said = self.suite("--match", "test_gpu|kill|gpt2", "--rounds", "2", expect=0)
        self.assert_check("test_gpu", "ok", "1 passed")
        self.assert_check("processes: a kill", "ok", "1 passed")
        table = (self.out / "gpu.md").read_text()
        self.assertIn("- state: complete", table)
        self.assertIn("PyTorch compiled", table)
        self.assertIn(table, said)
        self.assertEqual({answer["round"] for answer in self.records("answer")}, {1, 2})

    def test_what_was_predicted_stands_beside_what_was_found(self):
        self.program("bin/test_gpu", PASSES)
        self.program("bin/test_gpu_buckets", skips("not applicable: one GPU"))
        said = self.suite("--match", "test_gpu|bucket|gpt2", "--rounds", "1", expect=0)
        table = (self.out / "gpu.md").read_text()
        self.assertIn("| test_gpu | ok | ok | 1 passed |", table)
        self.assertIn("has the host's bits | not applicable | not applicable |", table)
        ours = next(line for line in table.splitlines() if "32 x 1024 tokens | ours |" in line)
        self.assertRegex(ours, r"\| 10,240 \| .* \| 463,000 tokens/s ± 15% \|$")
        self.assertRegex(said, r"ours, round 1: 10,240 tokens/s \(predicted: 463,000")

    def test_the_plan_is_printed_and_nothing_is_started(self):
        self.program("bin/test_gpu", "raise SystemExit('was started')")
        self.program("path/nvidia-smi", "raise SystemExit('no driver')")
        for args, gpus in (((), "1 GPU"), (("--gpus", "8"), "8 GPUs")):
            said = self.suite("--plan", *args, expect=0)
            self.assertIn(f"# Plan for {gpus}\n", said)
            self.assertIn("| test_gpu | ok |", said)
        self.assertFalse(self.out.exists())

    def test_figures_that_a_check_tells_and_nccls_log_are_in_the_results(self):
        self.program("path/nvidia-smi", 'print("A GPU, 80 GiB, 580")\n' * 2)
        self.module("nccl_memory", "def test_it(self): print('\\nnote: 3 MiB before, 4 after')")
        self.program("bin/test_gpu_buckets", PASSES + """
import os
name = os.environ["NCCL_DEBUG_FILE"].replace("%h", "here").replace("%p", "7")
assert os.environ["NCCL_DEBUG"] == "INFO"
open(name, "w").write("NCCL INFO Channel 00")
""")
        self.suite("--only", "correct", expect=0)
        self.assert_check("nccl_memory: it", "ok", "1 passed; 3 MiB before, 4 after")
        self.assertEqual((self.out / "nccl-here-7.txt").read_text(), "NCCL INFO Channel 00")

    def test_a_check_that_needs_the_gpus_alone_comes_after_all_others(self):
        self.module("nccl_memory", "def test_it(self): pass")
        self.module("processes", "def test_it(self): __import__('time').sleep(0.5)")
        self.suite("--only", "correct", "--at-once", "4", expect=0)
        self.assertEqual(self.records("check")[-1]["name"], "nccl_memory: it")

    def test_what_was_skipped_has_failed_where_there_is_a_gpu(self):
        self.program("bin/test_gpu", PASSES + skips("no driver"))
        self.module("processes", "def test_it(self): self.skipTest('no module')")
        self.suite("--only", "correct", expect=1)
        self.assert_check("test_gpu", "FAILED", "1 skipped: no driver")
        self.assert_check("processes: it", "FAILED", "1 skipped: no module")
        self.suite("--only", "correct", "--device", "cpu", expect=0)
        self.assert_check("test_gpu", "skipped", "no driver")

    def test_what_one_gpu_cannot_show_is_not_applicable(self):
        self.program("bin/test_gpu", skips("not applicable: one GPU"))
        self.program("bin/test_gpu_some", PASSES + skips("not applicable: one GPU"))
        self.module("nccl_worlds", "def test_it(self): self.skipTest('not applicable: one GPU')")
        self.suite("--only", "correct", expect=0)
        for name in ("test_gpu", "nccl_worlds: it"):
            self.assert_check(name, "not applicable", "one GPU")
        self.assert_check("test_gpu_some", "ok", "1 passed; 1 not applicable: one GPU")

    def test_what_crashes_breaks_off_or_prints_garbage_has_failed_and_the_rest_runs(self):
        self.program("bin/test_gpu_a", """
            import os, signal
            print("[ RUN      ] A.Crashes", flush=True)
            os.kill(os.getpid(), signal.SIGSEGV)
        """)
        self.program("bin/test_gpu_b",
                     'import sys; sys.stdout.buffer.write(b"\\xff\\x00 OK\\n" * 9)')
        self.program("bin/test_gpu_c", 'print("[ RUN      ] A.EndsTheProcess")')
        (self.bundle / "bin/test_gpu_d").write_text("no program")
        self.program("bin/test_gpu_e", PASSES)
        self.module("processes", "def test_it(self): self.fail('no')")
        (self.gpu / "foreign_models.py").write_text(
            "import nothing_of_the_kind\nclass T:\n    def test_import(self): pass\n")
        self.suite("--only", "correct", expect=1)
        self.assert_check("test_gpu_a", "FAILED", "signal 11 in A.Crashes")
        self.assert_check("test_gpu_b", "FAILED", "no test ran")
        self.assert_check("test_gpu_c", "FAILED", "A.EndsTheProcess")
        self.assert_check("test_gpu_d", "FAILED", "exit 127")
        self.assert_check("test_gpu_e", "ok")
        self.assert_check("processes: it", "FAILED", "exit 1")
        self.assert_check("foreign_models: import", "FAILED", "exit 1")

    def test_what_hangs_is_ended_with_all_that_it_has_started(self):
        pids = self.bundle / "pids"
        self.program("bin/test_gpu", f"""
            import os, subprocess, time
            print("[ RUN      ] A.Hangs", flush=True)
            away = subprocess.Popen(["sleep", "1000"], start_new_session=True)
            with open({str(pids)!r}, "w") as f:
                print(os.getpid(), away.pid, file=f)
            time.sleep(1000)
        """)
        self.program("bin/test_gpu_after", PASSES)
        self.suite("--only", "correct", "--minutes", "0.6", "--at-once", "2", expect=1)
        self.assert_check("test_gpu", "FAILED", "no end after")
        self.assert_check("test_gpu", "FAILED", "in A.Hangs")
        self.assert_check("test_gpu_after", "ok")
        self.assert_gone(map(int, pids.read_text().split()))

    def assert_gone(self, pids):
        for pid in pids:
            stat = pathlib.Path(f"/proc/{pid}/stat")
            self.assertTrue(not stat.exists() or ") Z " in stat.read_text(), pid)

    def test_a_side_that_fails_costs_the_others_nothing(self):
        (self.gpu / "peer.py").write_text(textwrap.dedent("""
            import sys
            if "--compile" in sys.argv:
                sys.exit("no C compiler")
            if "--matmul" in sys.argv:
                print('{"tflops": NaN} {garbage')
                print('{"tflops": NaN}')
                sys.exit(0)
        """) + PEER)
        self.suite("--only", "fast", "--match", "gpt2", "--rounds", "3", expect=0)
        failed = [answer for answer in self.records("answer") if "failed" in answer]
        self.assertEqual(len(failed), 2, "each once, not once a round")
        table = (self.out / "gpu.md").read_text().splitlines()
        self.assertIn("no C compiler", next(line for line in table if "PyTorch compiled" in line))
        eager = next(line for line in table if "gpt2" in line and "PyTorch eager" in line)
        self.assertIn("| 3 | 2.0", eager)  # rounds, and the ratio to our figure

    def test_our_side_that_fails_is_wrong(self):
        self.program("bin/bench_train", 'raise SystemExit("no kernel")')
        self.suite("--only", "fast", "--match", "gpt2", "--rounds", "1", expect=1)
        self.assertIn("no kernel", (self.out / "gpu.md").read_text())

    def test_the_time_goes_to_checks_then_to_a_round_of_each_figure_then_to_more(self):
        self.program("bin/test_gpu", PASSES)
        self.program("bin/bench_train", "import time; time.sleep(0.3)\n" + BENCH)
        begin = time.monotonic()
        self.suite("--match", "test_gpu|gpt2", "--minutes", "0.8", "--rounds", "1000", expect=0)
        self.assertLess(time.monotonic() - begin, 0.8 * 60)
        rounds = [answer["round"] for answer in self.records("answer")]
        self.assertEqual(rounds, sorted(rounds))
        self.assertEqual(rounds.count(1), 8)  # the peak, five sides, and two starts
        self.assertGreater(rounds[-1], 1)
        self.assertLess(rounds[-1], 1000)
        kinds = [next(iter(json.loads(line)))
                 for line in (self.out / "gpu.jsonl").read_text().splitlines()]
        self.assertLess(kinds.index("check"), kinds.index("answer"))

    def test_a_check_without_time_left_was_not_run_and_that_is_no_success(self):
        self.program("bin/test_gpu", PASSES)
        self.suite("--minutes", "0.1", expect=1)  # less than the reserve
        self.assert_check("test_gpu", "NOT RUN", "no time left")

    def test_a_figure_without_time_left_is_told_as_not_measured(self):
        self.suite("--only", "fast", "--match", "gpt2", "--minutes", "0.1", expect=0)
        rows = [line for line in (self.out / "gpu.md").read_text().splitlines() if "gpt2" in line]
        self.assertEqual(len(rows), 7)
        for row in rows:
            self.assertIn("| not measured |", row)

    def hanging_suite(self):
        """One with a check that has ended, and another one in hand."""
        self.program("bin/test_gpu_a", PASSES)
        pids = self.bundle / "pid"
        self.program("bin/test_gpu_b", f"""
            import os, time
            with open({str(pids)!r}, "w") as f:
                print(os.getpid(), file=f)
            time.sleep(1000)
        """)
        run = self.start("--at-once", "1")
        deadline = time.monotonic() + 60
        while not (pids.exists() and pids.read_text().endswith("\n")):
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.02)
        return run, int(pids.read_text())

    def test_a_suite_that_is_killed_leaves_all_that_it_had(self):
        run, pid = self.hanging_suite()
        run.kill()
        run.wait()
        os.kill(pid, signal.SIGKILL)
        self.assert_check("test_gpu_a", "ok")
        self.assertIn("- state: unfinished", (self.out / "gpu.md").read_text())

    def test_a_suite_that_is_asked_to_end_ends_what_runs(self):
        run, pid = self.hanging_suite()
        run.send_signal(signal.SIGTERM)
        said, _ = run.communicate(timeout=DEADLINE_S)
        self.assertEqual(run.returncode, 1, said)
        self.assert_gone([pid])
        self.assert_check("test_gpu_a", "ok")
        self.assertIn("- state: stopped", (self.out / "gpu.md").read_text())


if __name__ == "__main__":
    unittest.main()
