"""Deaths, interrupts and strangers: clear words, a checkpoint that survives, no process left."""
import os
import signal
import socket
import struct
import subprocess
import unittest

from fails_with import events
from harness import DEADLINE_S, LockstepTest

LONG = {"global_batch": 64, "slots": 4, "epochs": 5000}


class Failure(LockstepTest):
    def long_run(self, *args, **sections):
        job = self.job(self.small_data(), train=LONG, checkpoint={"every_steps": 20, "keep": 2},
                       cluster={"grace_s": 120}, **sections)
        run = self.start(job, "--workers", 3, *args)
        run.wait_for_step(45)
        return run

    def checkpoints(self, run):
        return self.succeed("ckpt", "verify", run.run_dir)

    def test_a_worker_that_may_not_be_started_again_ends_a_run_that_has_no_other(self):
        job = self.job(self.small_data(), train=LONG, checkpoint={"every_steps": 20, "keep": 2},
                       cluster={"grace_s": 120, "max_crashes": 0})
        run = self.start(job, "--workers", 1)
        run.wait_for_step(45)
        victim = run.worker(0)
        os.kill(victim, signal.SIGKILL)
        self.assert_fails(run, 70, names=[f"pid {victim}", "signal 9"], advises="--resume")
        self.checkpoints(run)
        self.assert_nothing_left(run)

    def test_a_worker_that_keeps_crashing_ends_the_run_when_its_budget_is_spent(self):
        job = self.job(self.small_data(), train=LONG, cluster={"max_crashes": 3})
        run = self.start(job, "--workers", 1)
        pids = set()
        # The step differs each time: two deaths over the same samples would blame the samples.
        for step in (1, 60, 120, 180):
            pid = run.wait_for(lambda: (set(run.workers()) - pids).pop(), "another worker")
            run.wait_for(lambda: run.status()["step"] >= step, f"step {step} was applied")
            pids.add(pid)
            os.kill(pid, signal.SIGABRT)
        self.assert_fails(run, 70, names=[f"pid {pid}", "signal 6"])
        self.assert_nothing_left(run)

    def test_a_killed_lockstep_run_leaves_no_process(self):
        run = self.long_run()
        run.process.kill()
        run.wait()
        self.assert_nothing_left(run)
        self.checkpoints(run)

    def test_sigterm_leaves_a_checkpoint_of_the_last_step(self):
        run = self.long_run()
        run.process.send_signal(signal.SIGTERM)
        self.assertEqual(run.wait(), 75, run.text()[-2000:])
        self.assert_nothing_left(run)
        last = run.history()[-1]["step"]
        self.assertIn(f"{last:010d}", self.checkpoints(run))

    def test_a_disk_that_fills_during_a_checkpoint_keeps_the_older_one(self):
        run = self.long_run()
        before = self.checkpoints(run)
        writer = next(m for m in run.status()["members"] if m["rank"] == 0)["pid"]
        # Stands for a full disk, for this process alone: the kernel lets no file grow further.
        subprocess.run(["prlimit", "--pid", str(writer), "--fsize=40000"], check=True)
        run.wait_for(lambda: events(run, "checkpoint_failed"), "a warning about the checkpoint")
        self.assert_event(run, "checkpoint_failed", says="File too large")
        after = self.checkpoints(run)
        self.assertTrue(before and after)
        run.process.send_signal(signal.SIGTERM)
        self.assertEqual(run.wait(), 70)  # the last checkpoint could not be written: said, not hidden
        self.assert_nothing_left(run)
        self.checkpoints(run)


class Strangers(LockstepTest):
    def test_strangers_harm_nobody_and_are_logged_in_one_line_each(self):
        job = self.job(self.small_data(), train=LONG)
        run = self.start(job, "--workers", 2)
        run.wait_for_step(5)
        host, port = run.coordinator()["control"].rsplit(":", 1)

        def connect():
            sock = socket.create_connection((host, int(port)), timeout=DEADLINE_S)
            self.addCleanup(sock.close)
            return sock

        def ended(sock):  # the coordinator closes; whatever it had said before is read away
            try:
                while sock.recv(4096):
                    pass
            except ConnectionResetError:
                pass
            return True

        silent = connect()  # never speaks
        garbage = connect()
        garbage.sendall(os.urandom(1 << 12))
        huge = connect()
        huge.sendall(struct.pack("<I", 0xFFFFFFFF) + b"x" * 64)
        self.assertTrue(ended(garbage))
        self.assertTrue(ended(huge))
        self.assertTrue(ended(silent))  # after the authentication deadline
        web_host, web_port = run.coordinator()["http"].rsplit(":", 1)
        with socket.create_connection((web_host, int(web_port)), timeout=DEADLINE_S) as web:
            web.sendall(b"GET /" + b"A" * 100_000 + b" HTTP/1.1\r\n\r\n")
            self.assertTrue(ended(web))
        step = len(run.history())
        run.wait_for_step(step + 20)  # still training
        run.process.send_signal(signal.SIGINT)
        self.assertEqual(run.wait(), 75)
        log = (run.run_dir / "logs" / "coordinator.log.jsonl").read_text()
        self.assertGreaterEqual(log.count("127.0.0.1"), 3)


class RunDirectory(LockstepTest):
    def test_a_directory_in_use_by_a_live_job_is_refused(self):
        job = self.job(self.small_data(), train=LONG)
        run = self.start(job, "--workers", 1)
        run.wait_for_step(1)
        second = self.start(job, "--workers", 1)
        self.assert_fails(second, 64, names=run.coordinator()["pid"], says="in use")
        run.wait_for_step(len(run.history()) + 5)  # the first one never noticed

    def test_a_directory_left_by_a_dead_job_names_resume(self):
        job = self.job(self.small_data(), train={"global_batch": 64, "max_steps": 5})
        self.finish(job, "--workers", 1)
        self.assert_fails(self.start(job, "--workers", 1), 64, advises="--resume")

    def test_a_taken_port_is_one_clear_line(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            job = self.job(self.small_data(), metrics={"listen": f"127.0.0.1:{port}"})
            run = self.start(job, "--workers", 1)
            self.assert_fails(run, 78, names=port)
            self.assert_nothing_left(run)


if __name__ == "__main__":
    unittest.main()
