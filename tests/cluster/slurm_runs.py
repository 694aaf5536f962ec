"""Runs that Slurm starts, by srun and from batch scripts, on one cluster for all tests of a file."""
import os
import pathlib
import shutil
import subprocess
import tempfile
import time
import unittest

from launches import LaunchTest, agent_command
from harness import BIN, DEADLINE_S, Run
from slurm_cluster import SlurmCluster, why_not

OVER = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "PREEMPTED", "BOOT_FAIL")
POLL_S = 0.25  # each time a command of Slurm's is run


class BatchJob:
    """A job of Slurm's with the manners of a Popen."""

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
    """`submit` gives the job's number; what the job says goes to `output`."""

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
        cls.place = tempfile.mkdtemp(prefix="lockstep-slurm-")
        cls.addClassCleanup(shutil.rmtree, cls.place, ignore_errors=True)
        os.chmod(cls.place, 0o755)  # munged wants it
        cls.cluster = SlurmCluster(pathlib.Path(cls.place) / "cluster", **cls.conf)
        cls.addClassCleanup(cls.cluster.close)

    def setUp(self):
        super().setUp()
        self.addCleanup(self.cluster.make_idle)

    def environment(self):
        return {**self.cluster.env, "TMPDIR": str(self.temporary),
                "PATH": f"{BIN}:{self.cluster.env['PATH']}"}

    def srun(self, job, *overrides, name="run", options=()):
        run = Run.__new__(Run)
        run_dir = self.scratch / name
        run.spawn(["srun", *options, *agent_command(job, run_dir, *overrides)], run_dir,
                  self.environment())
        self.runs.append(run)
        return run

    def nodes_of(self, run):
        """Names of the members' nodes by rank."""
        members = sorted(run.status()["members"], key=lambda member: member["rank"])
        return [member["node"] for member in members]
