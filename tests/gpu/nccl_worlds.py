"""Workers with a GPU each that sum over NCCL, and lose one of them at every stage. Without a GPU,
they sum over the host."""
import os
import signal
import unittest

from fails_with import events
from gpu_test import DEVICE, GPUS, GpuTest, needs_several_gpus

RANKS = min(GPUS, 4)
BACKEND = {"backend": "nccl" if DEVICE == "cuda" else "host"}
# The last event in a worker's log before it connects.
BEFORE_CONNECTING = "nccl" if DEVICE == "cuda" else "connected"


@needs_several_gpus
class NcclWorlds(GpuTest):
    def setUp(self):
        super().setUp()
        self.file = self.job_of(comm=BACKEND, epochs=12)

    def begin(self):
        """A run that lasts until it is disturbed."""
        return self.start(self.file, "--workers", RANKS, slot_ms=10)

    def kill(self, run, pid):
        os.kill(pid, signal.SIGKILL)
        run.wait_for(lambda: events(run, "member_died"), "the death was seen")

    def undisturbed(self):
        """A run of one worker that sums on the host, since exact mode has one tree for all
        worlds."""
        return self.finish(self.job_of(comm={"backend": "host"}, epochs=12), "--workers", 1,
                           name="undisturbed")

    def assert_undisturbed_result(self, run):
        self.assertEqual(run.wait(), 0, run.text()[-3000:])
        self.assert_same_result(run, self.undisturbed())

    def test_every_size_of_the_world_gives_the_weights_of_the_host(self):
        undisturbed = self.undisturbed()
        for workers in range(2, RANKS + 1):
            self.assert_same_result(self.finish(self.file, "--workers", workers,
                                                name=f"w{workers}"), undisturbed)

    def test_a_kill_while_the_world_is_made(self):
        run = self.begin()

        def last_to_come():
            lines = events(run, BEFORE_CONNECTING, "worker-*")
            return len(lines) >= RANKS and run.worker(-1)

        self.kill(run, run.wait_for(last_to_come, "all were about to connect"))
        self.assert_undisturbed_result(run)

    def test_a_kill_in_the_first_step(self):
        run = self.begin()
        run.wait_for_workers(RANKS)
        self.kill(run, run.worker(0))
        self.assert_undisturbed_result(run)

    def test_a_kill_in_steady_state(self):
        run = self.begin()
        run.wait_for_workers(RANKS)
        run.wait_for_step(20)
        self.kill(run, run.worker(1))
        run.wait_for_workers(RANKS)
        self.assert_undisturbed_result(run)

    def test_a_planned_switch_and_a_kill_within_one(self):
        run = self.begin()
        run.wait_for_workers(RANKS)
        run.wait_for_more_steps(5)
        self.succeed("scale", run.run_dir, RANKS - 1)
        run.wait_for_workers(RANKS - 1)
        run.wait_for_more_steps(5)
        plans = len(events(run, "change_planned"))
        self.succeed("scale", run.run_dir, RANKS)
        run.wait_for(lambda: len(events(run, "change_planned")) > plans, "a switch was planned")
        self.kill(run, run.worker(0))
        self.assert_undisturbed_result(run)


if __name__ == "__main__":
    unittest.main()
