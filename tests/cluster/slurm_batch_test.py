"""Batch jobs that `lockstep sbatch` writes, on a real cluster: preempted, requeued, robbed of a
node, and always with the weights, losses and samples of an undisturbed run."""
import os
import signal
import subprocess
import unittest

from fails_with import events
from harness import DEADLINE_S
from page_commands import PageCommands
from slurm_cluster import SlurmCluster
from slurm_runs import ROOT, SlurmTest

PAGE = ROOT / "deploy/slurm/README.md"


class Batch(SlurmTest):
    def start_four(self):
        run = self.sbatch(self.job_of(), options=["--nodes", "4"])
        run.wait_for_workers(4)
        run.wait_for_step(50)
        return run

    def assert_restarts(self, run, count):
        self.assertEqual(run.process.state()["Restarts"], str(count), run.text()[-3000:])

    def test_a_preempted_job_is_requeued_and_nobody_can_tell_from_the_result(self):
        run = self.start_four()
        self.cluster.command("sbatch", "--partition=high", "--nodes=4", "--exclusive",
                             f"--output={self.scratch}/high.out", "--wrap", "true")
        self.assert_as_if_nothing_had_happened(run)
        self.assertEqual(run.text().count("requeuing"), 1, run.text()[-3000:])
        self.assert_restarts(run, 1)
        token = (run.run_dir / "token").read_text().strip()
        self.assertNotIn(token, run.text() + (self.scratch / "run.sh").read_text())

    def test_a_lost_node_costs_no_turn(self):
        run = self.start_four()
        self.cluster.lose("n2")
        run.wait_for(lambda: len(run.workers()) == 3, "the others went on")
        self.assertEqual(self.nodes_of(run), ["n0", "n1", "n3"])
        self.assert_as_if_nothing_had_happened(run)
        self.assert_restarts(run, 0)

    def test_a_first_node_that_was_lost_and_comes_back_begins_another_turn(self):
        run = self.start_four()
        run.wait_for_step(150)  # there is a checkpoint
        self.cluster.lose("n0", is_seen_later=True)
        self.cluster.start_node("n0")
        self.assert_as_if_nothing_had_happened(run)
        self.assert_restarts(run, 1)

    def test_a_bad_job_file_ends_the_job_with_64_and_for_good(self):
        job = self.job_of()
        script = self.script(job, options=["--nodes", "4"])
        job.write_text(job.read_text().replace("global_batch", "global_batsh"))
        run = self.submit(script)
        self.assert_fails(run, 64, names="train.global_batsh")
        self.assert_restarts(run, 0)

    def test_a_cancelled_job_leaves_a_checkpoint_and_does_not_come_back(self):
        run = self.start_four()
        run.process.kill()
        run.wait()
        self.assertEqual(run.process.state()["JobState"], "CANCELLED")
        self.assertEqual(run.summary()["exit_code"], 75, run.text()[-3000:])
        self.assert_restarts(run, 0)
        again = self.sbatch(self.job_of(), options=["--nodes", "2"])
        self.assert_as_if_nothing_had_happened(again)

    def test_mistakes_are_found_before_the_job_is_in_the_queue(self):
        for words, subjects in (([self.job_of(), "train.epoch=3"], ["train.epoch", "train.epochs"]),
                                ([self.job_of(), "--time", "2"], ["--time", "--stop-before"]),
                                ([self.job_of(), "cluster.workers=3"], ["cluster.workers", 3, 1])):
            done = self.lockstep("sbatch", *words, "--run-dir", self.scratch / "run", "--submit")
            self.assert_fails(done, 64, names=subjects)
        done = self.lockstep("sbatch", self.job_of(), "--run-dir", self.scratch / "run", "--submit",
                             "--partition", "nowhere")
        self.assertEqual(done.returncode, 78, done.stderr)
        self.assertEqual(self.cluster.command("squeue", "-h"), "")

    def test_a_network_that_reaches_no_other_node_is_told(self):
        for network in ("loopback", "lo", "127.0.0.0/8"):
            with self.subTest(network):
                done = self.lockstep("sbatch", self.job_of(), f"comm.network={network}", "--run-dir",
                                     self.scratch / "run", "--nodes", "2")
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn(f"warning: comm.network is {network}", done.stderr)


class Array(SlurmTest):
    """One task's SLURM_JOB_ID is the number of the whole array, and would stand for all tasks."""

    def test_each_task_comes_back_once_and_those_that_finished_stay_finished(self):
        short, *long = tasks = ("60", "900", "901")  # of so many steps
        script = self.script(self.job_of(), "train.max_steps=%a", "checkpoint.every_steps=1000",
                             options=["--nodes", "1", "--array", ",".join(tasks)])
        number = self.submit(script).process.number
        runs = {task: self.run_in(self.scratch / "run" / task) for task in tasks}

        def told(task, key):
            return self.cluster.job(f"{number}_{task}")[key]
        self.cluster.wait_for(lambda: told(short, "JobState") == "COMPLETED", "the first is done",
                              120)
        for task in long:
            history = runs[task].run_dir / "history.jsonl"
            self.cluster.wait_for(lambda history=history: history.exists()
                                  and history.read_bytes().count(b"\n") > 20,
                                  f"{task} trains", 120)
            self.cluster.command("scancel", "--batch", "--signal=USR1", f"{number}_{task}")
        for task in long:
            self.cluster.wait_for(lambda task=task: told(task, "JobState") == "COMPLETED"
                                  and told(task, "Restarts") == "1", f"{task} came back once", 180)
        self.assertEqual([told(task, "Restarts") for task in tasks], ["0", "1", "1"])
        for task in tasks:
            summary = runs[task].summary()
            self.assertEqual((summary["exit_code"], summary["steps"]), (0, int(task)))


class TimeLimit(SlurmTest):
    def setUp(self):
        super().setUp()
        # This cluster requeues the job by itself.
        self.other = SlurmCluster(self.place / "other", RequeueExit="70-74,75")
        self.addCleanup(self.other.close)

    def test_a_job_is_requeued_before_its_time_is_over(self):
        # Runs at the same time in a cluster whose RequeueExit holds 75 and in one whose does not.
        options = ["--nodes", "2", "--time", "1", "--stop-before", "20"]
        job = self.job_of()
        runs = [self.sbatch(job, "cluster.lease_s=300", name=name, cluster=cluster, options=options)
                for name, cluster in (("plain", self.cluster), ("exit", self.other))]
        held = []
        for run in runs:  # they do not end before their time is over
            run.wait_for_workers(2)
            held.append(run.worker(1))
            os.kill(held[-1], signal.SIGSTOP)
        for run, pid in zip(runs, held):
            run.wait_for(lambda run=run: events(run, "stop_requested", "agent-1"),
                         "it was told to stop")
            os.kill(pid, signal.SIGCONT)
        for run in runs:
            self.assert_as_if_nothing_had_happened(run)
            # A slow machine needs more than two turns; each asks for the next one once.
            turns = int(run.process.state()["Restarts"])
            self.assertGreaterEqual(turns, 1)
            self.assertGreater(run.summary()["terms"], turns, "each turn ended with a checkpoint")
            asked = turns if run is runs[0] else 0
            self.assertEqual(run.text().count("requeuing"), asked)


class Page(SlurmTest):
    """The commands that deploy/slurm/README.md tells people to type."""

    def typed(self, command):
        self.job(self.data, train={"global_batch": 64, "slots": 4, "max_steps": 50})
        runs = self.scratch / "runs"
        runs.mkdir(exist_ok=True)
        variables = {**self.environment(), "JOB": str(self.scratch / "job.yaml"),
                     "RUN_DIR": str(runs), "OPTIONS": f"--output={self.scratch}/%x-%A-%a.out"}
        done = subprocess.run(["bash", "-euc", command], env=variables, capture_output=True,
                              text=True, timeout=DEADLINE_S, cwd=self.scratch)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def test_its_commands_do_what_it_says(self):
        page = PageCommands(PAGE)
        submitted = [self.typed(page.take(heading))
                     for heading in ("As a batch job", "Several runs")]
        self.typed(page.take("GPUs"))
        self.assertIn("--ntasks-per-node=2\n", (self.scratch / "runs/gpus.sh").read_text())
        self.typed(page.take("Inside an allocation"))
        self.assertEqual(page.left, [], "nobody has tried these")
        self.cluster.wait_for(self.cluster.is_idle, "all jobs were done", 300)
        for text in submitted:
            self.assertRegex(text, r"Submitted batch job \d+")
        self.assertEqual(self.result("srun"), self.result("batch"))
        self.assertNotEqual(self.result("seed-1"), self.result("seed-2"))

    def result(self, name):
        run = self.run_in(self.scratch / "runs" / name)
        self.assertEqual(run.summary()["exit_code"], 0)
        return run.summary()["weights_sha256"]


if __name__ == "__main__":
    unittest.main()
