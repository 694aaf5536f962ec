"""A run that lacks something of the machine ends with the cause, and does not try again without
end."""
import contextlib
import os
import pathlib
import unittest

from harness import BIN, LockstepTest

PID_GROUPS = pathlib.Path("/sys/fs/cgroup/pids")  # of version 1

NO_LIMIT = "unlimited"

TRAIN = {"global_batch": 64, "slots": 4, "epochs": 5000}


class Limits(LockstepTest):
    def endless(self):
        return self.job(self.small_data(), model={"name": "mlp"}, train=TRAIN,
                        cluster={"grace_s": 120})

    def programs(self):
        """A directory of the test's own with links to the programs, and copies of the replaced
        ones."""
        directory = self.scratch / "bin"
        directory.mkdir()
        for program in BIN.iterdir():
            (directory / program.name).symlink_to(program)
        self.replace(directory / "lockstep", (BIN / "lockstep").read_bytes())
        return directory

    def replace(self, path, content):
        path.unlink()
        path.write_bytes(content)
        path.chmod(0o755)

    def lacking(self, program):
        """The program, linked with a library that does not exist."""
        wanted = b"libstdc++.so.6\0"
        content = (BIN / program).read_bytes()
        self.assertIn(wanted, content)
        return content.replace(wanted, b"libstdc++.so.9\0")

    def test_a_coordinator_that_lacks_a_library_is_not_tried_again(self):
        programs = self.programs()
        self.replace(programs / "lockstep-coordinator", self.lacking("lockstep-coordinator"))
        run = self.start(self.endless(), "--workers", 1, program=programs / "lockstep")
        self.assert_fails(run, 70, says="the coordinator")
        self.assertIn("libstdc++.so.9", run.text())
        self.assertNotIn("started again", run.text())
        self.assert_nothing_left(run)

    def test_a_worker_that_lacks_a_library_is_not_tried_again(self):
        programs = self.programs()
        self.replace(programs / "lockstep-worker", self.lacking("lockstep-worker"))
        run = self.start(self.endless(), "--workers", 2, program=programs / "lockstep")
        self.assertEqual(run.wait(), 70)
        self.assertIn("libstdc++.so.9", run.text())
        self.assert_nothing_left(run)

    def test_too_few_descriptors_are_named_with_the_limit_to_raise(self):
        run = self.start(self.endless(), "--workers", 3, prefix=["prlimit", "--nofile=24:24"])
        run.prefix = []
        self.assertNotIn(run.wait(), (0, 75))
        self.assertIn("ulimit -n", run.text())
        self.assert_nothing_left(run)


class FewProcesses:
    """Runs with room for few processes and threads. Each subclass is one way to limit them."""

    def start_with(self, count, **more):
        job = self.job(self.small_data(), model={"name": "mlp"}, train={**TRAIN, "max_steps": 300},
                       cluster={"grace_s": 120})
        run = self.start(job, "--workers", 2, prefix=self.limited_to(count), **more)
        run.prefix = []
        return run

    def assert_limit_is_named(self, run):
        self.assertEqual(run.wait(), 70, run.text()[-2000:])
        self.assertIn("ulimit -u, or pids.max", run.text())

    def test_without_room_for_a_coordinator_it_ends_at_once(self):
        run = self.start_with(1)
        self.assert_limit_is_named(run)

    def test_workers_without_room_for_their_threads_are_not_tried_for_ever(self):
        run = self.start_with(7)
        self.assert_limit_is_named(run)
        self.assertNotIn("terminate called", run.text())
        self.assert_nothing_left(run)

    def test_with_room_for_some_of_the_threads_it_ends_with_the_same_weights_or_the_cause(self):
        undisturbed = self.start_with(NO_LIMIT, name="undisturbed")
        self.assertEqual(undisturbed.wait(), 0, undisturbed.text()[-2000:])
        run = self.start_with(12)
        if run.wait() == 0:
            self.assert_same_result(run, undisturbed)
        else:
            self.assert_limit_is_named(run)


class Container(FewProcesses, LockstepTest):
    def setUp(self):
        super().setUp()
        self.group = PID_GROUPS / f"lockstep-test-{os.getpid()}"
        try:
            self.group.mkdir()
        except OSError as error:
            self.skipTest(f"NO CONTROL GROUP CAN BE MADE: {error}")
        self.addCleanup(self.remove_group)

    def remove_group(self):
        with contextlib.suppress(OSError):
            self.group.rmdir()

    def limited_to(self, count):
        (self.group / "pids.max").write_text("max" if count == NO_LIMIT else str(count))
        return ["sh", "-c", f'echo $$ > {self.group}/cgroup.procs && exec "$@"', "sh"]


class User(FewProcesses, LockstepTest):
    """ulimit -u. The kernel exempts root, so another user, who may read all files, starts the
    run."""

    def setUp(self):
        super().setUp()
        if os.getuid() != 0:
            self.skipTest("ONLY ROOT CAN BECOME A USER WITHOUT PROCESSES")
        self.user = str(50_000 + os.getpid() % 10_000)

    def limited_to(self, count):
        if count == NO_LIMIT:
            return []
        kept = "-all,+dac_override,+dac_read_search"
        return ["setpriv", "--reuid", self.user, "--regid", self.user, "--clear-groups",
                "--inh-caps", kept, "--ambient-caps", kept, "--bounding-set", kept,
                "prlimit", f"--nproc={count}"]


if __name__ == "__main__":
    unittest.main()
