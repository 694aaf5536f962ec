"""Signals as shells and tools send them: twice, to a group, from a terminal that hangs up."""
import os
import pathlib
import signal
import subprocess
import time
import unittest

from harness import BIN, DEADLINE_S, LockstepTest, processes_of, standing_still

TRAIN = {"global_batch": 64, "slots": 4, "epochs": 5000}


def send_together(pid, signals):
    """The process gets them in the order of their numbers, with nothing in between."""
    os.kill(pid, signal.SIGSTOP)
    for each in signals:
        os.kill(pid, each)
    os.kill(pid, signal.SIGCONT)


class SignalsTest(LockstepTest):
    slot_ms = 5

    def endless(self, **sections):
        return self.job(self.small_data(), **{"model": {"name": "mlp"}, "train": TRAIN,
                                              "checkpoint": {"every_steps": 1000}, **sections})


class Echoes(SignalsTest):
    def assert_stopped_with_a_checkpoint(self, run):
        self.assertEqual(run.wait(), 75, run.text()[-2000:])
        self.assertIn(f"{run.history()[-1]['step']:010d}",
                      self.succeed("ckpt", "verify", run.run_dir))

    def test_two_signals_at_once_are_one_wish(self):
        for signals in ((signal.SIGINT, signal.SIGTERM), (signal.SIGHUP, signal.SIGINT)):
            with self.subTest(signals):
                run = self.start(self.endless(), "--workers", 2, name=signals[0].name)
                run.wait_for_step(5)
                send_together(run.process.pid, signals)
                self.assert_stopped_with_a_checkpoint(run)

    def test_timeout_signals_its_child_and_its_childs_group(self):
        for each in (signal.SIGINT, signal.SIGTERM):
            with self.subTest(each):
                run = self.start(self.endless(), "--workers", 2, name=each.name,
                                 prefix=["timeout", "--kill-after", "1000", "1000"])
                run.prefix = []
                run.wait_for_step(5)
                run.process.send_signal(each)
                self.assert_stopped_with_a_checkpoint(run)

    def test_an_agent_that_somebody_else_started_heeds_it_too(self):
        run = self.start(self.endless(), "--workers", 1)
        run.wait_for_step(5)
        send_together(run.agent(), (signal.SIGHUP, signal.SIGINT))
        self.assertNotEqual(run.wait(), 0)
        log = (run.run_dir / "logs" / "agent.log.jsonl").read_text()
        self.assertNotIn("signal 9", log)


class Impatience(SignalsTest):
    def hurry(self, run):
        """Ctrl-C until it heeds the second one, while no worker can answer."""
        with standing_still(run):
            run.process.send_signal(signal.SIGINT)
            run.wait_for(lambda: "stopping after" in run.text(), "it heeded the first signal")
            while run.process.poll() is None:
                run.process.send_signal(signal.SIGINT)
                time.sleep(0.05)
            self.assertEqual(run.wait(), 70, run.text()[-2000:])

    def test_a_second_signal_ends_it_at_once_and_speaks_of_no_checkpoint_without_one(self):
        run = self.start(self.endless(cluster={"lease_s": 60}), "--workers", 2)
        run.wait_for_step(5)
        self.hurry(run)
        self.assertNotIn("last checkpoint", run.text())
        self.assert_fails(run, 70, says="before the first checkpoint", advises="--resume")

    def test_with_a_checkpoint_it_names_it(self):
        job = self.endless(cluster={"lease_s": 60}, checkpoint={"every_steps": 10})
        run = self.start(job, "--workers", 2)
        run.wait_for(lambda: run.status()["last_checkpoint"], "a checkpoint")
        self.hurry(run)
        self.assert_fails(run, 70, says="the last checkpoint stays", advises="--resume")


class Ignored(SignalsTest):
    def test_who_starts_it_with_nohup_may_close_the_terminal(self):
        run = self.start(self.endless(), "--workers", 1, prefix=["nohup"])
        run.prefix = []
        run.wait_for_step(5)
        for pid in (run.process.pid, run.agent()):
            os.kill(pid, signal.SIGHUP)
        run.wait_for_more_steps(20)
        self.assertNotIn("stopping", run.text())
        run.process.send_signal(signal.SIGTERM)
        self.assertEqual(run.wait(), 75, run.text()[-2000:])

    def test_an_agent_with_nohup_keeps_its_workers(self):
        run = self.start(self.endless(), "--workers", 1)
        run.wait_for_step(5)
        pid = run.agent()
        self.assertEqual(ignored(pid) & {signal.SIGHUP, signal.SIGINT}, set())
        os.kill(pid, signal.SIGHUP)  # without nohup it goes
        self.assertNotEqual(run.wait(), 0)
        agent = subprocess.Popen(
            ["nohup", BIN / "lockstep", "agent", self.scratch / "job.yaml", "--run-dir",
             run.run_dir], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            env=self.environment())
        self.addCleanup(lambda: (agent.kill(), agent.wait()))
        run.process = agent
        run.wait_for(lambda: run.status()["state"] == "training", "it trained again")
        agent.send_signal(signal.SIGHUP)
        run.wait_for_more_steps(20)
        agent.send_signal(signal.SIGTERM)
        self.assertEqual(agent.wait(), 75)


def ignored(pid):
    text = pathlib.Path(f"/proc/{pid}/status").read_text()
    mask = int(text.split("SigIgn:")[1].split()[0], 16)
    return {number for number in signal.valid_signals() if mask >> (number - 1) & 1}


def states(pids):
    return {pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
            for pid in pids}


class CtrlZ(SignalsTest):
    def test_it_stops_the_whole_run_and_fg_continues_it(self):
        run = self.start(self.endless(), "--workers", 2)
        run.wait_for_step(5)
        pids = processes_of(run.run_dir)
        self.assertEqual(len(pids), 5, "run, coordinator, agent and two workers")
        workers, generation = run.workers(), run.status()["generation"]
        run.process.send_signal(signal.SIGTSTP)
        run.wait_for(lambda: states(pids) == {"T"}, "all had stopped")
        self.assertEqual(sorted(processes_of(run.run_dir)), sorted(pids))
        run.process.send_signal(signal.SIGCONT)
        run.wait_for_more_steps(20)
        self.assertEqual((run.workers(), run.status()["generation"]), (workers, generation))
        run.process.send_signal(signal.SIGTERM)
        self.assertEqual(run.wait(), 75, run.text()[-2000:])
        self.audit(run)


SHELL = """exec > >(tee {log})
sleep 100000 & echo $! > {sleeper}
(sleep 100000 & echo $! > {orphan}; wait) & echo $! > {parent}
exec "$@"
"""


class ChildrenOfTheShell(SignalsTest):
    def pid_of(self, name):
        return int((self.scratch / name).read_text())

    def start_from_a_shell(self, job):
        script = SHELL.format(**{name: self.scratch / name
                                 for name in ("log", "sleeper", "orphan", "parent")})
        run = self.start(job, "--workers", 1, prefix=["bash", "-c", script, "bash"])
        run.prefix = []
        run.wait_for_step(5)
        for name in ("sleeper", "orphan"):
            self.addCleanup(os.kill, self.pid_of(name), signal.SIGKILL)
        os.kill(self.pid_of("parent"), signal.SIGKILL)  # the run is its subreaper
        return run

    def assert_that_they_live(self):
        self.assertEqual(states([self.pid_of("sleeper"), self.pid_of("orphan")]), {"S"})

    def test_they_outlive_a_killed_agent_and_the_run_and_tee_writes_all(self):
        run = self.start_from_a_shell(self.endless())
        agent, before = run.agent(), run.workers()
        os.kill(agent, signal.SIGKILL)
        run.wait_for(lambda: run.agent() != agent and run.workers() and
                     not set(run.workers()) & set(before), "another agent had workers")
        run.wait_for(lambda: run.status()["state"] == "training", "they trained")
        self.assert_that_they_live()
        run.process.send_signal(signal.SIGINT)
        self.assertEqual(run.wait(), 75)
        self.assert_that_they_live()
        log = self.scratch / "log"
        deadline = time.monotonic() + DEADLINE_S
        while "stopped" not in log.read_text() and time.monotonic() < deadline:
            time.sleep(0.02)  # tee ends after the run
        self.assertIn("stopped", log.read_text())

    def test_they_outlive_a_run_that_is_ended_at_once(self):
        run = self.start_from_a_shell(self.endless(cluster={"lease_s": 60}))
        with standing_still(run):
            while run.process.poll() is None:
                run.process.send_signal(signal.SIGINT)
                time.sleep(0.05)
        self.assertEqual(run.wait(), 70)
        self.assert_that_they_live()


if __name__ == "__main__":
    unittest.main()
