"""Watching a run by command: lockstep ui, report and top, while it goes on and after its end."""
import contextlib
import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
import unittest
import urllib.error
import pathlib

import browser
from browser import Browser
from harness import BIN, DEADLINE_S, LockstepTest, get, kill_at_once, lockstep, processes_of


class Watching(LockstepTest):
    slot_ms = 5

    def long_run(self):
        job = self.job(self.small_data(), model={"name": "mlp"},
                       train={"global_batch": 64, "slots": 4, "max_steps": 1_000_000_000},
                       optimizer={"name": "adamw", "lr": 0.0002}, checkpoint={"every_steps": 25})
        run = self.start(job, "--workers", 2)
        run.wait_for_workers(2)
        run.wait_for_more_steps(150)
        return run

    def stopped(self, run):
        run.process.send_signal(signal.SIGTERM)
        self.assertEqual(run.wait(), 75)
        return run

    def command(self, *words, expect=0):
        done = lockstep(*words, timeout=DEADLINE_S)
        self.assertEqual(done.returncode, expect, done.stdout + done.stderr)
        return done.stdout

    def ui(self, run):
        process = subprocess.Popen([BIN / "lockstep", "ui", str(run.run_dir)], text=True,
                                   stdout=subprocess.PIPE)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.terminate)
        return process, process.stdout.readline().split()[0]

    def test_one_command_shows_a_run_that_lives_dies_and_has_ended(self):
        run = self.long_run()
        process, url = self.ui(run)
        self.assertIn("http://127.0.0.1:", url)
        self.assertIn(b"<title>Lockstep", get(url))
        status = json.loads(get(url + "api/v1/status"))
        self.assertEqual((status["run"], status["state"]), ("test", "training"))
        steps = json.loads(get(url + "api/v1/history?points=5"))["steps"]
        self.assertLessEqual(len(json.loads(get(url + "api/v1/history?points=5"))["first"]), 5)
        self.stopped(run)
        status = json.loads(get(url + "api/v1/status"))
        self.assertEqual((status["state"], status["exit_code"]), ("ended", 75))
        self.assertEqual(status["step"], run.summary()["steps"])
        self.assertEqual([m["rank"] for m in status["members"]], [0, 1])
        history = json.loads(get(url + "api/v1/history?points=10"))
        self.assertGreaterEqual(history["steps"], steps)
        self.assertEqual(history["steps"], len(run.history()))
        events = json.loads(get(url + "api/v1/events"))
        self.assertIn("run_ended", [e["event"] for e in events["events"]])
        self.assertEqual(events["generations"][-1]["generation"], 1)
        with self.assertRaises(urllib.error.HTTPError) as refused:
            get(url + "api/v1/nothing")
        refused.exception.close()
        self.assertEqual(refused.exception.code, 404)
        process.terminate()
        self.assertEqual(process.wait(DEADLINE_S), 0)

    def test_who_watches_is_never_in_the_way_of_a_coordinator_that_is_started_again(self):
        run = self.long_run()
        _, url = self.ui(run)

        def shown():
            with contextlib.suppress(urllib.error.HTTPError):
                return json.loads(get(url + "api/v1/status"))
            return {}

        for term in (2, 3, 4):
            os.kill(run.coordinator()["pid"], signal.SIGKILL)
            deadline = time.monotonic() + 120
            while (status := shown()).get("term") != term:
                self.assertNotIn(status.get("state"), ("ended", "interrupted"))
                self.assertIsNone(run.process.poll(), run.text()[-2000:])
                self.assertLess(time.monotonic(), deadline)
            run.wait_for_more_steps(20)
        self.assertEqual([e["event"] for e in json.loads(get(url + "api/v1/events"))["events"]]
                         .count("take_over"), 3, "the page knows what was before")

    def test_a_run_of_which_nothing_is_alive_is_interrupted(self):
        run = self.long_run()
        kill_at_once(processes_of(run.run_dir))
        run.process.wait()
        frame = self.command("top", str(run.run_dir), "--once")
        self.assertIn("test: interrupted, generation 1", frame)
        goodput = float(re.search(r"goodput (\d+\.\d) %", frame)[1])
        self.assertGreater(goodput, 0, "it has trained")
        first, *_ = self.command("status", str(run.run_dir), expect=3).splitlines()
        self.assertIn("test: interrupted", first)
        self.assertIn("before)", frame, "many checkpoints are one line")

    def test_status_of_a_run_that_is_over_begins_with_how_it_ended(self):
        run = self.stopped(self.long_run())
        first, *_ = self.command("status", str(run.run_dir), expect=3).splitlines()
        self.assertIn("stopped", first)
        self.assertIn(f"{run.summary()['steps']:,}", first)
        self.assertNotIn("refused", first)
        done = self.finish(self.job(self.small_data()), "--workers", 1, "train.max_steps=2",
                           name="done")
        first, *others = self.command("status", str(done.run_dir), expect=3).splitlines()
        self.assertIn("done", first)
        self.assertFalse(any("--resume" in line for line in others), "there is nothing left to do")
        failed = self.start(self.job(self.small_data()), "--workers", 1, "optimizer.lr=1e30",
                            "optimizer.name=sgd", name="failed")
        self.assertEqual(failed.wait(), 65, failed.text())
        if failed.run_dir.exists():
            self.assertIn("65", self.command("status", str(failed.run_dir), expect=3)
                          .splitlines()[0])

    def test_top_without_a_terminal_follows_a_run_to_its_end(self):
        run = self.long_run()
        process = subprocess.Popen([BIN / "lockstep", "top", str(run.run_dir)], text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(process.kill)
        self.assertIn("test: training", process.stdout.readline())
        # Its coordinator is gone, and the run is not over: a frame comes all the same.
        os.kill(run.process.pid, signal.SIGSTOP)
        os.kill(run.coordinator()["pid"], signal.SIGKILL)
        for line in process.stdout:
            if "nobody answers" in line:
                break
        else:
            self.fail(process.stderr.read())
        os.kill(run.process.pid, signal.SIGCONT)
        run.wait_for(lambda: run.status()["term"] == 2, "another coordinator")
        self.stopped(run)
        out, error = process.communicate(timeout=DEADLINE_S)
        self.assertEqual((process.returncode, error), (0, ""))
        self.assertIn("test: ended", out)

    def test_a_directory_without_a_run_is_refused(self):
        for command in ("ui", "report", "top"):
            self.command(command, str(self.temporary), expect=66)

    @unittest.skipUnless(browser.PROGRAM, "there is no chromium here (package chromium)")
    def test_a_report_is_one_file_that_shows_the_run_in_a_browser(self):
        run = self.stopped(self.long_run())
        path = pathlib.Path(self.command("report", str(run.run_dir)).strip())
        self.assertEqual(path, (run.run_dir / "report.html").resolve())
        chromium = Browser(self.scratch / "browser")
        self.addCleanup(chromium.close)
        chromium.open(path.as_uri(), 1280, 900)
        chromium.wait_for("document.body && document.body.dataset.shown === 'yes'")
        self.assertEqual(chromium.value("document.getElementById('state').textContent"), "ended")
        points = chromium.value("Number(document.querySelector('#loss svg').dataset.points)")
        self.assertGreater(points, 50)
        self.assertEqual(chromium.value("document.querySelectorAll('#ranks tbody tr').length"), 2)
        self.assertGreater(chromium.value("document.querySelectorAll('#events li').length"), 3)
        self.assertEqual(chromium.complaints, [], "also of its own policy")
        requests = chromium.value("performance.getEntriesByType('resource').length")
        self.assertEqual(requests, 0, "it takes nothing from elsewhere")

    @unittest.skipUnless(browser.PROGRAM, "there is no chromium here (package chromium)")
    def test_a_report_of_several_runs_has_a_curve_for_each(self):
        data = self.small_data()
        runs = [self.finish(self.job(data), "--workers", 1, f"optimizer.lr={lr}", name=name)
                for name, lr in (("one", 0.002), ("two", 0.01))]
        output = self.scratch / "both.html"
        self.command("report", *[str(run.run_dir) for run in runs], "-o", str(output))
        chromium = Browser(self.scratch / "browser")
        self.addCleanup(chromium.close)
        chromium.open(output.as_uri(), 1280, 900)
        chromium.wait_for("document.body && document.body.dataset.shown === 'yes'")
        for plot, points in (("loss", 20), ("lr", 20), ("test-loss", 2), ("accuracy", 2)):
            count, shown = chromium.value(
                f"[document.querySelectorAll('#{plot} path.curve').length, "
                f"Number(document.querySelector('#{plot} svg').dataset.points)]")
            self.assertEqual((count, shown), (2, points), plot)
        rows = chromium.value("[...document.querySelectorAll('#runs tbody tr')]"
                              ".map((row) => row.textContent)")
        for run, row in zip(runs, rows):
            self.assertIn(str(run.run_dir), row)
            self.assertIn(f"{100 * run.summary()['eval_accuracy']:.2f} %", row)
        differ = chromium.value("[...document.querySelectorAll('#differences tbody tr')]"
                                ".map((row) => row.dataset.key)")
        self.assertEqual(differ, ["optimizer.lr"])
        self.assertEqual(chromium.complaints, [])
        if folder := os.environ.get("LOCKSTEP_SCREENSHOTS"):
            pathlib.Path(folder, "compare.png").write_bytes(chromium.screenshot())

    def test_top_draws_the_terminal_it_is_given_until_q(self):
        run = self.long_run()
        frame = self.command("top", str(run.run_dir), "--once")
        for part in ("test: training", "samples/s", "rank", "communication", "generation 1"):
            self.assertIn(part, frame)
        self.assertNotIn("\x1b", frame, "it is no terminal")

        main, other = pty.openpty()
        self.addCleanup(os.close, main)

        def resize(rows, columns):
            fcntl.ioctl(main, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

        resize(30, 100)
        before = termios.tcgetattr(other)
        process = subprocess.Popen([BIN / "lockstep", "top", str(run.run_dir)], stdin=other,
                                   stdout=other, stderr=other, start_new_session=True,
                                   env={**os.environ, "TERM": "xterm", "LC_ALL": "C.UTF-8"},
                                   preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        self.addCleanup(process.kill)

        def wait_for(found, what):
            text, deadline = b"", time.monotonic() + 60
            while time.monotonic() < deadline:
                if select.select([main], [], [], 1)[0]:
                    text += os.read(main, 65536)
                if found(text):
                    return text
            raise AssertionError(f"waited for {what}: {text[-3000:]!r}")

        def widest(text):
            frames = text.decode(errors="ignore").split("\x1b[H")
            lines = [line.split("\x1b")[0] for frame in frames[1:-1] for line in frame.split("\r\n")]
            return max((len(line) for line in lines), default=0)

        text = wait_for(lambda text: text.count(b"\x1b[H") > 2, "frames")
        self.assertIn(b"\x1b[?1049h", text)
        self.assertIn("█".encode(), text)
        self.assertGreater(widest(text), 60)
        resize(10, 40)
        wait_for(lambda text: text.count(b"\x1b[H") > 2 and widest(text[text.rindex(
            b"\x1b[H", 0, text.rindex(b"\x1b[H")):]) < 40, "a narrow frame")
        os.write(main, b"q")
        self.assertEqual(process.wait(DEADLINE_S), 0)
        wait_for(lambda text: b"\x1b[?1049l" in text, "the screen of before")
        self.assertEqual(termios.tcgetattr(other), before, "the terminal is as it was")
        os.close(other)


if __name__ == "__main__":
    unittest.main()
