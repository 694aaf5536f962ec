"""mpirun starts one agent a rank. It never sees a worker die, ends with the run's code, and the same
command again continues: always with the weights, losses and samples of an undisturbed run."""
import json
import os
import signal
import subprocess
import unittest

from launches import (HERE, PATIENCE, LaunchTest, agent_command, kill_at_once, needs_mpirun,
                      processes_of)


@needs_mpirun
class Mpirun(LaunchTest):
    def start_three(self, **kinds):
        run = self.mpirun(self.job_of(), **kinds)
        run.wait_for_step(50)
        return run

    def assert_said_once(self, run, *needles):
        for needle in needles:
            self.assertEqual(run.text().count(needle), 1, run.text()[-3000:])

    def test_three_ranks_train_and_only_rank_0_speaks(self):
        run = self.mpirun(self.job_of())
        self.assert_as_if_nothing_had_happened(run)
        self.assert_said_once(run, "global batch 64", run.summary()["weights_sha256"])
        self.assertNotIn("\x1b", run.text(), "mpirun's output is no terminal")

    def test_a_killed_worker_is_not_seen_by_mpirun(self):
        run = self.start_three()
        victim = run.worker(2)
        os.kill(victim, signal.SIGKILL)
        run.wait_for(lambda: len(run.workers()) == 3 and victim not in run.workers(),
                     "another worker had its place")
        self.assert_as_if_nothing_had_happened(run)
        self.assert_event(run, "member_died", names=f"pid {victim}")

    def test_a_killed_coordinator_costs_no_step(self):
        run = self.start_three()
        workers = run.workers()
        killed = run.coordinator()["pid"]
        os.kill(killed, signal.SIGKILL)
        run.wait_for(lambda: run.coordinator()["pid"] != killed, "another coordinator served")
        run.wait_for_more_steps(100)
        self.assertEqual(run.workers(), workers)
        self.assertEqual(run.status()["generation"], 1)
        self.assert_as_if_nothing_had_happened(run)

    def test_a_killed_agent_beside_the_coordinator_is_started_again(self):
        run = self.start_three()
        os.kill(processes_of(run.run_dir, lambda words: b"--agents-here" in words)[0],
                signal.SIGKILL)
        self.assert_as_if_nothing_had_happened(run)

    def test_a_stop_of_mpirun_ends_at_a_checkpoint_and_the_same_command_continues(self):
        command = [self.job_of()]
        run = self.mpirun(*command, options=PATIENCE)
        run.wait_for_step(50)
        stopped = run.worker(1)
        os.kill(stopped, signal.SIGSTOP)  # the run does not end before the stop comes
        run.process.send_signal(signal.SIGTERM)
        # mpirun itself sleeps between its signals, and what ranks print then may be lost.
        run.wait_for(lambda: "stop_requested" in (run.run_dir / "logs/agent-2.log.jsonl").read_text(),
                     "the ranks heard of the stop")
        os.kill(stopped, signal.SIGCONT)
        self.assertNotEqual(run.wait(), 0)
        self.assert_no_process_holds_anything(run)
        self.assertEqual(run.summary()["exit_code"], 75)
        again = self.mpirun(*command)
        self.assert_as_if_nothing_had_happened(again)

    def test_a_forwarded_usr1_ends_with_75_and_other_ranks_continue(self):
        run = self.start_three()
        run.process.send_signal(signal.SIGUSR1)
        self.assertEqual(run.wait(), 75, run.text()[-3000:])
        self.assertTrue(run.summary()["checkpoint"])
        again = self.mpirun(self.job_of(), np=2)
        self.assert_as_if_nothing_had_happened(again)
        summary = (again.run_dir / "summary.json").read_text()
        done = self.mpirun(self.job_of())
        self.assertEqual(done.wait(), 0, done.text()[-3000:])
        self.assert_said_once(done, done.summary()["weights_sha256"])
        self.assertEqual((done.run_dir / "summary.json").read_text(), summary)
        other = self.mpirun(self.job_of(), "seed=12")
        self.assert_fails_once(other, 64, ["seed", 12])

    def test_a_bad_job_file_is_said_once(self):
        run = self.mpirun(self.job(self.small_data(), train={"global_batsh": 64}))
        self.assert_fails_once(run, 64, ["train.global_batsh"])
        self.assertFalse(run.run_dir.exists())

    def test_the_job_may_not_ask_for_more_workers_than_there_are_ranks(self):
        run = self.mpirun(self.job_of(), "cluster.workers=4", np=2)
        self.assert_fails_once(run, 64, ["cluster.workers", 4, 2])

    def test_a_second_launch_in_the_same_directory_is_refused_and_harms_nobody(self):
        run = self.start_three()
        other = self.mpirun(self.job_of())
        self.assert_fails_once(other, 64, [other.run_dir, "in use"])
        self.assert_as_if_nothing_had_happened(run)

    def test_a_killed_rank_ends_the_launch_and_the_next_one_continues(self):
        run = self.start_three()
        run.wait_for_step(150)  # there is a checkpoint
        os.kill(run.agents()[2], signal.SIGKILL)
        self.assertNotEqual(run.wait(), 0)
        self.assert_as_if_nothing_had_happened(self.mpirun(self.job_of()))

    def test_the_ranks_of_an_mpirun_that_was_killed_stop_with_a_checkpoint(self):
        run = self.start_three()
        run.process.kill()
        run.wait()
        self.assert_no_process_holds_anything(run)
        self.assertEqual(run.summary()["exit_code"], 75)
        self.assert_as_if_nothing_had_happened(self.mpirun(self.job_of()))

    def test_what_a_launch_that_was_killed_left_behind_misleads_nobody(self):
        run = self.start_three()
        run.wait_for_step(150)
        kill_at_once([run.process.pid] + run.agents())
        run.wait()
        self.assertEqual(json.loads((run.run_dir / "launch.json").read_text())["state"], "running")
        self.assert_no_process_holds_anything(run)
        # Rank 0 is late: the others see only what is left of the launch before.
        go = self.scratch / "go"
        command = agent_command(self.job_of(), run.run_dir)
        late = ["sh", "-c", f"until [ -e {go} ]; do sleep 0.1; done; exec \"$@\"", "late", *command]
        again = self.mpirun_apps([(1, late), (2, command)])
        again.wait_for(lambda: len(again.agents()) == 2, "the other ranks waited")
        go.touch()
        self.assert_as_if_nothing_had_happened(again)

    def test_a_rank_0_that_dies_before_it_prepares_ends_the_launch(self):
        command = agent_command(self.job_of(), self.scratch / "run")
        run = self.mpirun_apps([(1, ["sh", "-c", "sleep 1; kill -9 $$"]), (2, command)])
        self.assertNotEqual(run.wait(), 0)
        self.assert_no_process_holds_anything(run)


@needs_mpirun
class Hosts(LaunchTest):
    """Hosts that are this machine under other names: UTS, IPC and mount namespaces, one network."""

    def setUp(self):
        super().setUp()
        probe = subprocess.run(["unshare", "-m", "-u", "-i", "hostname", "other"],
                               capture_output=True, text=True)
        if probe.returncode != 0:
            self.skipTest("no namespaces can be made here: " + probe.stderr.strip())

    def test_a_worker_of_another_host_is_killed(self):
        job = self.job_of()
        hosts = self.scratch / "hosts"
        hosts.write_text("n0 slots=2\nn1 slots=1\n")
        os.environ["FAKE_HOSTS"] = str(self.scratch / "fake")
        self.addCleanup(os.environ.pop, "FAKE_HOSTS")
        run = self.mpirun(job, options=["--hostfile", str(hosts), "--mca", "plm", "rsh", "--mca",
                                        "plm_rsh_agent", str(HERE / "fake_host.sh"), "--mca",
                                        "oob_tcp_if_include", "lo", "-x", "TMPDIR"])
        run.wait_for_step(50)
        members = sorted(run.status()["members"], key=lambda member: member["rank"])
        self.assertEqual([m["node"] for m in members], ["n0:0", "n0:1", "n1"])
        os.kill(members[2]["pid"], signal.SIGKILL)
        run.wait_for(lambda: run.worker(2) != members[2]["pid"], "another worker had its place")
        self.assert_as_if_nothing_had_happened(run)


if __name__ == "__main__":
    unittest.main()
