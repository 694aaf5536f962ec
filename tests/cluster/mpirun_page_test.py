"""The commands in deploy/mpirun/README.md do with a real mpirun what the page says."""
import os
import pathlib
import re
import signal
import time
import unittest

from launches import HERE, LaunchTest, needs_mpirun
from harness import BIN, ROOT, Run
from hosts import NETWORK, Hosts, why_not
from page_commands import PageCommands

PAGE = ROOT / "deploy/mpirun/README.md"


@needs_mpirun
@unittest.skipIf(reason := why_not(), reason)
class Page(LaunchTest):
    def setUp(self):
        super().setUp()
        self.page = PageCommands(PAGE)
        self.job_of()  # and the undisturbed run
        self.hosts = Hosts(2)
        self.addCleanup(self.hosts.close)

    def variables(self, name, **more):
        return {**self.environment(), "OMPI_ALLOW_RUN_AS_ROOT": "1",
                "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "PATH": f"{BIN}:{os.environ['PATH']}",
                "OPTIONS": f"--oversubscribe --mca orte_tmpdir_base {self.scratch}",
                "JOB": str(self.scratch / "job.yaml"), "RUN_DIR": str(self.scratch / name), **more}

    def begin(self, heading, name="run", prefix=(), **more):
        """Starts the next commands under a heading; one Run holds all their processes."""
        command = self.page.take(heading)
        run = Run.__new__(Run)
        run.spawn([*prefix, "bash", "-euc", command], self.scratch / name,
                  self.variables(name, **more))
        self.runs.append(run)
        return run

    def typed(self, heading, name="run", **more):
        run = self.begin(heading, name, **more)
        self.assertEqual(run.wait(), 0, run.text()[-3000:])
        return run.text()

    def mpirun_pid(self, run):
        """bash replaces itself by mpirun if the block is one command."""
        command = pathlib.Path(f"/proc/{run.process.pid}/cmdline")
        run.wait_for(lambda: b"mpirun" in command.read_bytes().split(b"\0")[0], "mpirun began")
        return run.process.pid

    def begun(self, heading, name="run", **more):
        run = self.begin(heading, name, **more)
        steps = len(run.history()) if (run.run_dir / "history.jsonl").exists() else 0
        run.wait_for_step(steps + 100)
        return run

    def test_its_commands_do_what_it_says(self):
        self.assert_ready(self.typed("Before the run"), ranks=4, hosts=1)
        self.the_run_is_drained_stopped_and_continued()
        self.typed("Gradients over MPI", "mpi")
        self.assert_as_if_nothing_had_happened(self.runs[-1])
        self.one_that_is_told_to_end_has_time_for_a_checkpoint()
        self.ranks_on_two_hosts()
        self.typed("Other launchers", "own")
        self.assert_as_if_nothing_had_happened(self.runs[-1])
        self.assertEqual(self.page.left, [], "nobody has tried these")

    def assert_ready(self, text, ranks, hosts):
        """Checks the last line of a preflight."""
        verdict = next(line for line in text.splitlines() if line.startswith("ready"))
        self.assertEqual(re.findall(r"\d+", verdict)[:2], [str(ranks), str(hosts)])

    def the_run_is_drained_stopped_and_continued(self):
        self.slot_ms = 20  # it waits for commands that are typed
        run = self.begun("The run")
        run.wait_for_workers(4)
        self.typed("The run")  # drain
        run.wait_for(lambda: len(run.workers()) == 3, "the others went on")
        self.typed("Stopping and continuing", MPIRUN_PID=str(self.mpirun_pid(run)))
        self.assertEqual(run.wait(), 75, run.text()[-3000:])
        self.assertTrue(run.summary()["checkpoint"])
        self.slot_ms = type(self).slot_ms
        self.typed("Stopping and continuing")
        self.assert_as_if_nothing_had_happened(self.runs[-1])

    def one_that_is_told_to_end_has_time_for_a_checkpoint(self):
        # mpirun passes the signal on after ten seconds: the run must not be over by then.
        job = self.job_of(name="long.yaml", train={**self.train, "max_steps": 1_000_000})
        run = self.begun("Stopping and continuing", "patient", JOB=str(job))
        began = time.monotonic()
        os.kill(self.mpirun_pid(run), signal.SIGTERM)
        self.assertNotEqual(run.wait(), 0)
        self.assertGreater(time.monotonic() - began, 9, "Open MPI's own time is one second")
        self.assert_no_process_holds_anything(run)
        self.assertEqual(run.summary()["exit_code"], 75)

    def ranks_on_two_hosts(self):
        here, there = self.hosts.address(0), self.hosts.address(1)
        options = self.variables("two")["OPTIONS"] + (
            f" --mca plm rsh --mca plm_rsh_agent {HERE}/namespace_host.sh -x TMPDIR")
        run = self.begin("Several hosts", "two", prefix=self.hosts.on(0), OPTIONS=options,
                         HOSTS=f"{here}:2,{there}:1", NETWORK=NETWORK,
                         HOSTS_NAME=self.hosts.names[0].rsplit("-", 1)[0])
        self.assertEqual(run.wait(), 0, run.text()[-3000:])
        self.assert_ready(run.text(), ranks=3, hosts=2)
        self.assertRegex(run.text(), r"(?m)^3 workers\b")
        self.assert_as_if_nothing_had_happened(run)


if __name__ == "__main__":
    unittest.main()
