"""Data processes, the zygote and the main process die; Ctrl-C comes."""

from __future__ import annotations

import mmap
import os
import signal
import struct
import subprocess
import sys
import time
import unittest

from data_support import Numbers, eventually, flat, is_alive, started, task

from lockstep._data import DataError

# A shell without job control starts commands with it ignored, and children would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)


class Shared:
    """A few numbers that all processes share."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, 4096)

    def __getitem__(self, place: int) -> int:
        return struct.unpack_from("<q", self._memory, 8 * place)[0]

    def __setitem__(self, place: int, value: int) -> None:
        struct.pack_into("<q", self._memory, 8 * place, value)


def children(pid: int) -> list[int]:
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
        return [int(word) for word in file.read().split()]


PARENT = """
import sys
from data_support import Numbers, started, task
feed = started(Numbers(), 2)
feed.take(task(0))
print(feed._pool._zygote, *(p.pid for p in feed._pool.processes), flush=True)
sys.stdin.read()
"""

INTERRUPTED = """
import os, signal, sys, time
from data_support import Numbers, started, task
def hook(index):
    if index == 5:
        print("computing", flush=True)
        while True:
            time.sleep(1000)
feed = started(Numbers(hook=hook), 1)
try:
    feed.take(task(0))
except KeyboardInterrupt:
    now = time.monotonic()
    pids = [feed._pool._zygote, feed._pool.processes[0].pid]
    feed.close()
    print("interrupted", now, *pids, flush=True)
    sys.stdin.read()
"""


class Deaths(unittest.TestCase):
    def pids(self, feed):
        return [process.pid for process in feed._pool.processes]

    def test_a_killed_data_process_is_replaced_and_its_batches_do_not_change(self):
        shared = Shared()

        def hook(index):
            if index == 20 and not shared[0]:
                shared[0] = os.getpid()
                time.sleep(1000)

        alone = started(Numbers(), 0)
        for workers in (1, 2):
            shared[0] = 0
            feed = started(Numbers(hook=hook), workers)
            for step in range(6):
                feed.request(task(step))
            self.assertTrue(eventually(lambda: shared[0]))
            os.kill(shared[0], signal.SIGKILL)
            with self.assertLogs("lockstep.data", "WARNING") as logs:
                got = [flat(feed.take(task(step))) for step in range(6)]
            self.assertIn(f"data process {shared[0]} died (SIGKILL)", logs.output[0])
            self.assertEqual(got, [flat(alone.take(task(step))) for step in range(6)])
            self.assertNotIn(shared[0], self.pids(feed))
            self.assertFalse(is_alive(shared[0]))
            feed.close()

    def test_a_process_that_is_killed_while_idle_counts_for_no_task(self):
        feed = started(Numbers(), 1)
        with self.assertLogs("lockstep.data", "WARNING"):
            for _ in range(4):
                pid = self.pids(feed)[0]
                os.kill(pid, signal.SIGKILL)
                self.assertTrue(eventually(lambda pid=pid: not is_alive(pid)))
                self.assertEqual(feed.take(task(0)).indices, task(0).indices)
        feed.close()

    def test_a_task_that_was_sent_to_a_dead_process_was_not_its_death(self):
        shared = Shared()

        def hook(index):
            if index == 20 and not shared[0]:
                shared[0] = 1
                os._exit(9)

        feed = started(Numbers(hook=hook), 1)
        pid = self.pids(feed)[0]
        os.kill(pid, signal.SIGKILL)
        self.assertTrue(eventually(lambda: not is_alive(pid)))
        with self.assertLogs("lockstep.data", "WARNING") as logs:
            feed.request(task(1))
            self.assertEqual(feed.take(task(1)).indices, task(1).indices)
        self.assertEqual(len(logs.output), 2)
        feed.close()

    def test_samples_that_kill_two_processes_are_named(self):
        def hook(index):
            if index == 20:
                os._exit(9)

        feed = started(Numbers(hook=hook), 2)
        for step in range(4):
            feed.request(task(step))
        with self.assertLogs("lockstep.data", "WARNING"), self.assertRaises(DataError) as caught:
            feed.take(task(1))
        self.assertEqual(caught.exception.code, 65)
        self.assertIn("positions 4 to 7 of epoch 0 (indices 20, 25, 30, 35;", str(caught.exception))
        self.assertIn("killed 2 data processes, the last by exit code 9", str(caught.exception))
        for step in (0, 2, 3):
            self.assertEqual(feed.take(task(step)).indices, task(step).indices)
        feed.close()

    def test_batches_of_a_dead_process_can_be_taken(self):
        feed = started(Numbers(), 1)
        feed.request(task(0))
        first = feed.take(task(1)).value
        pid = self.pids(feed)[0]
        os.kill(pid, signal.SIGKILL)
        self.assertTrue(eventually(lambda: not is_alive(pid)))
        with self.assertLogs("lockstep.data", "WARNING"):
            feed.take(task(2))
        self.assertEqual(feed.take(task(0)).value[:, 0].tolist(), task(0).indices)
        self.assertEqual(first[:, 0].tolist(), task(1).indices)
        feed.close()

    def test_without_the_zygote_the_worker_ends(self):
        feed = started(Numbers(), 2)
        feed.take(task(0))
        os.kill(feed._pool._zygote, signal.SIGKILL)
        pids = self.pids(feed)
        self.assertTrue(eventually(lambda: not any(map(is_alive, pids))))
        with self.assertRaises(DataError) as caught:
            feed.take(task(1))
        self.assertEqual(caught.exception.code, 70)
        feed.close()

    def test_close_ends_processes_that_are_computing(self):
        shared = Shared()

        def hook(index):
            shared[0] = 1
            time.sleep(1000)

        feed = started(Numbers(hook=hook), 2)
        feed.request(task(0))
        self.assertTrue(eventually(lambda: shared[0]))
        pids = [feed._pool._zygote, *self.pids(feed)]
        feed.close()
        self.assertFalse(any(map(is_alive, pids)))

    def test_notices_to_the_whole_group_leave_data_processes_alone(self):
        feed = started(Numbers(), 1)
        for pid in (feed._pool._zygote, *self.pids(feed)):
            for number in (signal.SIGINT, signal.SIGUSR1, signal.SIGUSR2, signal.SIGHUP):
                os.kill(pid, number)
        os.kill(feed._pool._zygote, signal.SIGTERM)
        before = self.pids(feed)
        feed.take(task(0))
        self.assertEqual(self.pids(feed), before)
        feed.close()


class Parents(unittest.TestCase):
    def run_script(self, text):
        return subprocess.Popen(
            [sys.executable, "-c", text],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=os.path.dirname(os.path.abspath(__file__)),
        )

    def test_nobody_outlives_a_killed_parent(self):
        with self.run_script(PARENT) as parent:
            pids = [int(word) for word in parent.stdout.readline().split()]
            self.assertEqual(len(pids), 3)
            self.assertTrue(all(map(is_alive, pids)))
            parent.kill()
            parent.wait()
            self.assertTrue(eventually(lambda: not any(map(is_alive, pids))))

    def test_ctrl_c_reaches_a_take_that_waits(self):
        with self.run_script(INTERRUPTED) as parent:
            self.assertEqual(parent.stdout.readline(), "computing\n")
            parent.send_signal(signal.SIGINT)
            words = parent.stdout.readline().split()
            self.assertEqual(words[0], "interrupted")
            self.assertFalse(any(is_alive(int(pid)) for pid in words[2:]))
            parent.stdin.close()
            self.assertEqual(parent.wait(), 0)


if __name__ == "__main__":
    unittest.main()
