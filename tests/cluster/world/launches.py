"""Runs that a launcher starts: `mpirun ... lockstep agent JOB.yaml --run-dir DIR`, and agents that
tests start with a launcher's variables."""
import contextlib
import os
import pathlib
import shutil
import unittest
import uuid

HERE = pathlib.Path(__file__).resolve().parent
from disturbed import DisturbedTest
from fails_with import lacking
from harness import BIN, Run, kill_at_once, processes_of  # noqa: F401

MPIRUN = shutil.which("mpirun")
# Seconds from the stop to SIGTERM, and again to SIGKILL; Open MPI's own 1 is little for a checkpoint.
PATIENCE = ["--mca", "odls_base_sigkill_timeout", "6"]


def agent_command(job, run_dir, *overrides):
    return [str(BIN / "lockstep"), "agent", str(job), *overrides, "--run-dir", str(run_dir)]


class MpiRun(Run):
    """`mpirun` in a process of its own. `apps`: the ranks' groups as (np, argv)."""

    def __init__(self, apps, run_dir, options=(), env=None):
        env = {**(env or os.environ), "OMPI_ALLOW_RUN_AS_ROOT": "1",
               "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        argv = [MPIRUN, "--oversubscribe", "--bind-to", "none",
                "--mca", "orte_tmpdir_base", str(pathlib.Path(run_dir).parent), *options]
        for group, (np, command) in enumerate(apps):
            argv += ([":"] if group > 0 else []) + ["-np", str(np), *command]
        self.spawn(argv, run_dir, env)

    def agents(self):
        """Pids of the ranks' processes by rank."""
        ranks = {}
        for entry in pathlib.Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            with contextlib.suppress(OSError, KeyError, ValueError):
                words = (entry / "cmdline").read_bytes().split(b"\0")
                if words[1:2] != [b"agent"] or os.fsencode(str(self.run_dir)) not in words:
                    continue
                if not any(word.endswith(b".yaml") for word in words):
                    continue  # the agent next to the coordinator
                variables = dict(pair.split(b"=", 1) for pair
                                 in (entry / "environ").read_bytes().split(b"\0") if pair)
                ranks[int(variables[b"OMPI_COMM_WORLD_RANK"])] = int(entry.name)
        return [ranks[rank] for rank in sorted(ranks)]


class LaunchTest(DisturbedTest):
    def mpirun(self, job, *overrides, name="run", np=3, options=()):
        run_dir = self.scratch / name
        return self.mpirun_apps([(np, agent_command(job, run_dir, *overrides))], name, options)

    def mpirun_apps(self, apps, name="run", options=()):
        run = MpiRun(apps, self.scratch / name, options, self.environment())
        self.runs.append(run)
        return run

    def ranks(self, job, *overrides, name="run", size=3, launch=None, env=None, prefix=(),
              env_of=None):
        """The agents of one launch. The test starts each with the variables of a launcher.
        `prefix`: a command that starts them elsewhere. `env_of`: more variables by rank."""
        launch = launch or uuid.uuid4().hex
        run_dir = self.scratch / name
        runs = []
        for rank in range(size):
            of_rank = {"LOCKSTEP_RANK": str(rank), "LOCKSTEP_WORLD_SIZE": str(size),
                       "LOCKSTEP_LOCAL_RANK": str(rank), "LOCKSTEP_LOCAL_WORLD_SIZE": str(size),
                       "LOCKSTEP_LAUNCH_ID": launch}
            run = Run.__new__(Run)
            run.spawn([*prefix, *agent_command(job, run_dir, *overrides)], run_dir,
                      {**self.environment(), **of_rank, **(env or {}),
                       **(env_of or {}).get(rank, {})})
            runs.append(run)
        self.runs += runs
        return runs

    def assert_fails_once(self, run, code, names):
        """One line, however many ranks there are, complains of these."""
        self.assert_fails(run, code, names)
        said = [line for line in run.text().splitlines() if not lacking(line, names)]
        self.assertEqual(len(said), 1, run.text()[-3000:])

    def codes(self, runs):
        return [run.wait() for run in runs]


needs_mpirun = unittest.skipUnless(MPIRUN, "there is no mpirun here")
