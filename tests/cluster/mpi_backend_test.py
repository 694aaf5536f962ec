"""comm.backend: mpi under a real mpirun. Gradients go over MPI, after a death over shared memory
and TCP, and after a new launch over MPI again. The weights always equal an undisturbed run's."""
import json
import os
import pathlib
import signal
import subprocess
import unittest

from launches import BIN, HERE, LaunchTest, needs_mpirun, processes_of

MODULE = pathlib.Path(BIN) / "liblockstep-mpi.so"
LETS_ONE_DIE = ["--mca", "orte_allowed_exit_without_sync", "1"]
OVER_MPI = "comm.backend=mpi"


@needs_mpirun
@unittest.skipUnless(MODULE.exists(), "built without Open MPI's headers (libopenmpi-dev)")
class MpiBackend(LaunchTest):
    def ways(self, run):
        """For each worker's log, the ways that its generations went, in order."""
        said = {}
        for log in sorted((run.run_dir / "logs").glob("worker-*.log.jsonl")):
            lines = [json.loads(line) for line in log.read_text().splitlines()]
            said[log.name] = [line["event"] for line in lines if line["event"].startswith("mpi")]
        return list(said.values())

    def start_three(self, options=()):
        run = self.mpirun(self.job_of(), OVER_MPI, options=[*LETS_ONE_DIE, *options])
        run.wait_for_step(50)
        self.assertEqual(self.ways(run), [["mpi"]] * 3)
        return run

    def kill_one(self, run):
        victim = run.worker(2)
        os.kill(victim, signal.SIGKILL)
        run.wait_for(lambda: len(run.workers()) == 3 and victim not in run.workers(),
                     "another worker had its place")

    def test_a_death_takes_the_run_to_the_host_in_place(self):
        run = self.start_three()
        self.kill_one(run)
        self.assert_as_if_nothing_had_happened(run)
        for ways in self.ways(run):
            # MPI's world ends with the first generation, whether the next has the survivors or all.
            self.assertEqual(set(ways[1:]), {"mpi_left"}, self.ways(run))

    def test_the_next_launch_brings_mpi_back(self):
        run = self.start_three()
        self.kill_one(run)
        run.process.send_signal(signal.SIGUSR1)
        self.assertEqual(run.wait(), 75, run.text()[-3000:])
        again = self.mpirun(self.job_of(), OVER_MPI, np=2, options=LETS_ONE_DIE)
        self.assert_as_if_nothing_had_happened(again)
        self.assertEqual([ways[-1] for ways in self.ways(again)][:2], ["mpi", "mpi"])

    def test_an_agent_that_is_started_again_cannot_enter_and_the_run_goes_on(self):
        run = self.start_three()
        os.kill(processes_of(run.run_dir, lambda words: b"--agents-here" in words)[0],
                signal.SIGKILL)
        self.assert_as_if_nothing_had_happened(run)

    def test_hosts_send_each_other_gradients_over_mpi(self):
        probe = subprocess.run(["unshare", "-m", "-u", "-i", "true"], capture_output=True, text=True)
        if probe.returncode != 0:
            self.skipTest("no namespaces can be made here: " + probe.stderr.strip())
        hosts = self.scratch / "hosts"
        hosts.write_text("n0 slots=2\nn1 slots=1\n")
        os.environ["FAKE_HOSTS"] = str(self.scratch / "fake")
        self.addCleanup(os.environ.pop, "FAKE_HOSTS")
        run = self.start_three(["--hostfile", str(hosts), "--mca", "plm", "rsh", "--mca",
                                "plm_rsh_agent", str(HERE / "fake_host.sh"), "--mca",
                                "oob_tcp_if_include", "lo",
                                "-x", "TMPDIR"])
        self.kill_one(run)
        self.assert_as_if_nothing_had_happened(run)

    def refused(self, run, *names):
        self.assert_fails_once(run, 78, ["comm.backend", *names])
        self.assertFalse(run.run_dir.exists())

    def test_what_makes_no_mpi_world_is_refused_and_says_what_would(self):
        job = self.job_of()
        self.refused(self.start(job, OVER_MPI, "--workers", 2, name="alone"),
                     "mpirun", "lockstep agent")
        self.refused(self.mpirun(job, OVER_MPI, name="strict"),
                     "--mca orte_allowed_exit_without_sync 1")
        self.refused(self.mpirun(job, OVER_MPI, "--workers", "2", name="many", np=1,
                                 options=LETS_ONE_DIE), "--workers")


if __name__ == "__main__":
    unittest.main()
