"""Runs that Slurm starts, by srun and from batch scripts, on one cluster for all tests of a file."""
import os
import pathlib
import subprocess
import time
import unittest

from launches import LaunchTest, agent_command
from harness import BIN, DEADLINE_S, ROOT, Run, lockstep, scratch_directory, slow_slots  # noqa: F401
from slurm_cluster import SlurmCluster, why_not

OVER = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "PREEMPTED", "BOOT_FAIL")
POLL_S = 0.25  # each time a command of Slurm's is run


class BatchJob:
    """A Slurm job with the interface of a Popen."""

    def __init__(self, cluster, number):
        self.cluster, self.number, self.returncode = cluster, number, None
        self.pid = None
        self.asked = 0.0

    def poll(self):
        if self.returncode is None and time.monotonic() - self.asked > POLL_S:
            said = self.cluster.job(self.number)
            self.asked = time.monotonic()
            if said["JobState"] in OVER:
                code, number = map(int, said["ExitCode"].split(":"))
                self.returncode = -number if number else code
        return self.returncode

    def wait(self, timeout=DEADLINE_S):
        deadline = time.monotonic() + timeout
        while self.poll() is None:
            if time.monotonic() > deadline:
                raise subprocess.TimeoutExpired(f"job {self.number}", timeout)
            time.sleep(POLL_S)
        return self.returncode

    def kill(self):
        self.cluster.command("scancel", str(self.number))

    def state(self):
        return self.cluster.job(self.number)


class SlurmRun(Run):
    """`submit` returns the job's number. The job's output goes to `output`."""

    def __init__(self, cluster, run_dir, output, number):
        self.run_dir, self.prefix = pathlib.Path(run_dir), []
        self.output = pathlib.Path(output)
        self.process = BatchJob(cluster, number)

    def text(self):
        return super().text() if self.output.exists() else ""


@unittest.skipIf(reason := why_not(), reason)
class SlurmTest(LaunchTest):
    conf = {}  # more of slurm.conf

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.place = scratch_directory(cls.addClassCleanup)
        os.chmod(cls.place, 0o755)  # munged wants it
        cls.cluster = SlurmCluster(cls.place / "cluster", **cls.conf)
        cls.addClassCleanup(cls.cluster.close)

    def setUp(self):
        super().setUp()
        self.addCleanup(self.cluster.make_idle)

    def environment(self, env=None, slot_ms=None):
        return super().environment({**self.cluster.env, **(env or {}),
                                    "PATH": f"{BIN}:{self.cluster.env['PATH']}"}, slot_ms)

    def srun(self, job, *overrides, name="run", options=()):
        run = Run.__new__(Run)
        run_dir = self.scratch / name
        run.spawn(["srun", *options, *agent_command(job, run_dir, *overrides)], run_dir,
                  self.environment())
        self.runs.append(run)
        return run

    def nodes_of(self, run):
        """The names of the members' nodes by rank."""
        members = sorted(run.status()["members"], key=lambda member: member["rank"])
        return [member["node"] for member in members]

    # ---- batch jobs ----

    def lockstep(self, *words, cluster=None):
        env = {**self.environment(), "SLURM_CONF": (cluster or self.cluster).env["SLURM_CONF"]}
        return lockstep(*words, env=env, cwd=self.scratch)

    def script(self, job, *overrides, name="run", options=()):
        """The file that `lockstep sbatch` writes."""
        path = self.scratch / f"{name}.sh"
        done = self.lockstep("sbatch", job, *overrides, "--run-dir", self.scratch / name,
                             "--output", path, *options)
        self.assertEqual(done.returncode, 0, done.stderr)
        return path

    def submit(self, script, name="run", cluster=None):
        cluster = cluster or self.cluster
        output = self.scratch / f"{name}.{time.monotonic_ns()}.out"
        said = cluster.command("sbatch", "--parsable", f"--output={output}", str(script),
                               env=slow_slots(self.slot_ms))
        run = SlurmRun(cluster, self.scratch / name, output, int(said))
        self.runs.append(run)
        return run

    def sbatch(self, job, *overrides, name="run", options=(), cluster=None):
        return self.submit(self.script(job, *overrides, name=name, options=options), name, cluster)

    def run_in(self, run_dir):
        return SlurmRun(self.cluster, run_dir, "/dev/null", 0)
