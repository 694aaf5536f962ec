"""Names that are odd, long or taken, and machines that lend less than they have."""
import contextlib
import os
import pathlib
import re
import signal
import subprocess
import unittest

from harness import BIN, DEADLINE_S, LockstepTest, lockstep

SHORT = {"global_batch": 64, "slots": 4, "max_steps": 3}
LONG = {**SHORT, "max_steps": 1000}
CPU_GROUPS = pathlib.Path("/sys/fs/cgroup/cpu")  # of version 1


class DefaultNames(LockstepTest):
    def test_runs_that_begin_in_the_same_second_have_directories_of_their_own(self):
        job = self.job(self.small_data(), train=SHORT, model={"name": "mlp"})
        runs = [subprocess.Popen([BIN / "lockstep", "run", job, "--workers", "1"],
                                 cwd=self.scratch, stdout=subprocess.PIPE, text=True,
                                 stderr=subprocess.STDOUT, env=self.environment())
                for _ in range(4)]
        said = [run.communicate(timeout=DEADLINE_S)[0] for run in runs]
        self.assertEqual([run.returncode for run in runs], [0] * 4, said)
        self.assertEqual(len(list((self.scratch / "runs").iterdir())), 4)


class OddNames(LockstepTest):
    slot_ms = 5

    def test_the_command_that_a_message_proposes_can_be_pasted(self):
        job = self.job(self.small_data(), train=LONG, checkpoint={"every_steps": 10},
                       model={"name": "mlp"})
        run = self.start(job, "--workers", 1, name="a b$HOME;'x")
        run.wait_for_step(15)
        run.process.send_signal(signal.SIGTERM)
        self.assertEqual(run.wait(), 75, run.text()[-2000:])
        [command] = re.findall(r"continue with: (.*)", run.text())
        self.assert_nothing_left(run)
        end = run.summary()["steps"] + 5
        shell = subprocess.run(["sh", "-c", f"{command} train.max_steps={end}"], text=True,
                               capture_output=True, timeout=DEADLINE_S, cwd="/",
                               env={**self.environment(slot_ms=0),
                                    "PATH": f"{BIN}:{os.environ['PATH']}"})
        self.assertEqual(shell.returncode, 0, shell.stdout + shell.stderr)
        proposed = [line.split("#")[0].strip() for line in shell.stdout.splitlines()
                    if line.startswith("  lockstep ckpt ")]
        self.assertTrue(proposed, shell.stdout)
        for line in proposed:
            self.assertEqual(subprocess.run(["sh", "-c", line], capture_output=True, timeout=DEADLINE_S,
                                            env={"PATH": f"{BIN}:{os.environ['PATH']}"}).returncode,
                             0, line)

    def test_a_name_that_is_too_long_is_refused_with_the_limit(self):
        job = self.job(self.small_data(), train=SHORT)
        long = self.scratch.joinpath(*["d" * 100] * 5)
        self.assert_fails(lockstep("run", job, "--run-dir", long), 64, names=["490", long],
                          advises="--run-dir")
        self.assertFalse((self.scratch / ("d" * 100)).exists())


class Quota(LockstepTest):
    def setUp(self):
        super().setUp()
        self.group = CPU_GROUPS / f"lockstep-test-{os.getpid()}"
        try:
            self.group.mkdir()
            (self.group / "cpu.cfs_quota_us").write_text("100000")
            (self.group / "cpu.cfs_period_us").write_text("100000")
        except OSError as error:
            with contextlib.suppress(OSError):
                self.group.rmdir()
            self.skipTest(f"NO CONTROL GROUP CAN BE MADE: {error}")
        self.addCleanup(self.group.rmdir)

    def test_a_container_gets_as_many_workers_as_its_quota_pays_for(self):
        job = self.job(self.small_data(), train=SHORT)
        command = f'echo $$ > {self.group}/cgroup.procs && exec "$@"'
        out = subprocess.run(["sh", "-c", command, "sh", BIN / "lockstep", "run", job,
                              "--print-config"], capture_output=True, text=True, timeout=DEADLINE_S)
        self.assertEqual(out.returncode, 0, out.stderr)
        self.assertRegex(out.stdout, r"(?m)^  workers: 1$")


class Urls(LockstepTest):
    """A URL that is taken for a path would make a folder called s3:."""

    def assert_refused(self, words, url):
        with self.subTest(words):
            self.assert_fails(lockstep(*words, cwd=self.scratch), 64, names=url, advises="path")
            self.assertEqual([*self.scratch.glob("*:")], [])

    def a_job(self):
        return self.job(self.small_data(), model={"name": "mlp"}, train=SHORT)

    def test_a_run_directory_that_is_a_url_is_refused_and_makes_no_folder(self):
        job = self.a_job()
        url = "s3://bucket/runs/first"
        for words in (["run", job, "--run-dir"], ["run", "--resume", "--run-dir"],
                      ["agent", job, "--run-dir"], ["agent", "--run-dir"],
                      ["sbatch", job, "--run-dir"], ["preflight", job, "--run-dir"], ["status"],
                      ["top"], ["stop"], ["scale", "--run-dir"], ["eval"], ["export", "model"],
                      ["ckpt", "ls"], ["runs"], ["report"], ["audit"], ["replay", "--step", "1"]):
            more = ["2"] if words[0] == "scale" else [self.scratch / "out"] \
                if words[0] == "export" else []
            self.assert_refused([*words, url, *more], url)

    def test_what_a_command_writes_is_no_url_and_makes_no_folder(self):
        job = self.a_job()
        data = self.small_data()
        run = self.scratch / "run"
        self.succeed("run", job, "--run-dir", run, "--workers", 1)
        for url in ("s3://bucket/out", "https://host/out.csv", "gs://bucket/out.svg"):
            for words in (["export", "model", run, url], ["report", run, "-o", url],
                          ["report", run, f"--output={url}"], ["data", "pack", data, url],
                          ["data", "index", data, "--cache-dir", url],
                          ["data", "inspect", data, "--cache-dir", url],
                          ["data", "verify", data, "--cache-dir", url],
                          ["data", "pack", data, self.scratch / "p", "--cache-dir", url],
                          ["certs", url], ["certs", "--dir", url],
                          ["predict", run, data, "--out", url],
                          ["eval", run, data, "--confusion", url],
                          ["replay", run, "--step", "1", "--batch-file", url],
                          ["sbatch", job, "--run-dir", run, "-o", url],
                          ["export", "tensorboard", url]):
                self.assert_refused(words, url)

    def test_a_cache_that_is_a_url_is_refused_before_a_run_begins(self):
        job = self.a_job()
        run = self.scratch / "run"
        for url in ("s3://bucket/cache", "https://host/cache", "gs://bucket/cache"):
            key = f"data.cache_dir={url}"
            for words in (["run", job, key, "--run-dir", run], ["agent", job, key, "--run-dir", run],
                          ["sbatch", job, key, "--run-dir", run], ["doctor", job, key],
                          ["k8s", "render", job, key, "--image", "i", "--run-claim", "c"],
                          ["preflight", job, key, "--run-dir", run],
                          ["run", job, key, "--print-config"]):
                self.assert_refused(words, url)
            self.assertFalse(run.exists())


if __name__ == "__main__":
    unittest.main()
