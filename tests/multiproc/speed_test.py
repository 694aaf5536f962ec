"""A worker that is slower than the other: it gets fewer slots, and the result is the same."""
import contextlib
import os
import signal
import threading
import time
import unittest

from harness import LockstepTest

SECTIONS = {"model": {"name": "mlp"}, "optimizer": {"name": "adamw", "lr": 0.0001},
            "checkpoint": {"every_steps": 500, "keep": 2}}


class Slowed:
    """A process that is stopped half of the time."""

    def __init__(self, pid, turn_s=0.02):
        self.pid, self.turn_s = pid, turn_s
        self.over = threading.Event()
        self.thread = threading.Thread(target=self._slow)
        self.thread.start()

    def _slow(self):
        with contextlib.suppress(ProcessLookupError):
            while not self.over.is_set():
                os.kill(self.pid, signal.SIGSTOP)
                time.sleep(self.turn_s)
                os.kill(self.pid, signal.SIGCONT)
                time.sleep(self.turn_s)

    def let_go(self):
        self.over.set()
        self.thread.join()


class Speed(LockstepTest):
    def slots(self, run):
        """The number of slots of each worker, by rank."""
        return [m["slots"][1] - m["slots"][0] for m in run.status()["members"]]

    def test_the_slower_of_two_gets_fewer_slots_and_the_bits_stay_the_same(self):
        train = {"global_batch": 64, "slots": 8, "max_steps": 10_000_000}
        job = self.job(self.small_data(), train=train, **SECTIONS)
        run = self.start(job, "--workers", 2)
        run.wait_for_step(50)
        self.assertEqual(self.slots(run), [4, 4])
        members = [m["id"] for m in run.status()["members"]]
        slowed = Slowed(run.worker(1))
        self.addCleanup(slowed.let_go)
        run.wait_for(lambda: self.slots(run)[1] < 4, "the slower one had fewer slots")
        self.assertEqual(sum(self.slots(run)), 8)
        self.assertEqual([m["id"] for m in run.status()["members"]], members)
        run.wait_for_more_steps(100)
        slowed.let_go()
        run.process.send_signal(signal.SIGINT)
        self.assertEqual(run.wait(), 75, run.text()[-3000:])
        self.assert_nothing_left(run)
        steps = len(run.history())
        alone = self.finish(job, f"train.max_steps={steps}", "--workers", 1, name="alone")
        self.assert_same_result(run, alone)


if __name__ == "__main__":
    unittest.main()
