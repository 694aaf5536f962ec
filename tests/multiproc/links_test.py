"""Connections break although no process died: between a worker and the coordinator, between
workers."""
import contextlib
import os
import signal
import sqlite3
import threading
import unittest

import sockets
from disturbed import SECTIONS, DisturbedTest
from fails_with import events
from hang_test import StoppedThread, waiting_thread

BAR_S = 10 * SECTIONS["cluster"]["lease_s"]  # after an eviction without proof


class ControlConnection(DisturbedTest):
    def disturb(self, how):
        """Breaks a worker's connection to the coordinator three times while it trains."""
        run = self.start_run(3)
        before = run.status()["members"]
        victim = before[1]
        for _ in range(3):
            again = self.connections_made(run)
            self.assertEqual(sockets.cut(victim["pid"], self.control_address(run), how), 1)
            run.wait_for(lambda: self.connections_made(run) > again, "it had connected again")
            run.wait_for_more_steps(50)
        now = run.status()
        self.assertEqual([(m["id"], m["pid"], m["rank"]) for m in now["members"]],
                         [(m["id"], m["pid"], m["rank"]) for m in before])
        self.assertEqual(now["generation"], 1, "nobody was evicted")
        self.assert_as_if_nothing_had_happened(run)
        self.assertEqual(run.summary()["generations"], 1)

    def test_a_preempted_worker_that_loses_its_connection_while_it_leaves_is_replaced(self):
        # One of the two is always stopped, or the run might end too early.
        run = self.start_run(2)
        stays, victim = run.workers()
        os.kill(stays, signal.SIGSTOP)
        os.kill(victim, signal.SIGTERM)
        run.wait_for(lambda: events(run, "change_planned"), "it was to leave")
        run.wait_for(lambda: not sockets.unread(victim, self.control_address(run)), "it knew")
        # From now on it trains, but neither receives nor sends a message.
        deaf = StoppedThread(run.wait_for(lambda: waiting_thread(victim, "lockstep-worker"), "it waited"))
        self.addCleanup(deaf.let_go)
        self.assertEqual(sockets.cut(victim, self.control_address(run)), 1)
        os.kill(stays, signal.SIGCONT)
        run.wait_for(lambda: victim not in run.workers(), "it had left")
        os.kill(stays, signal.SIGSTOP)
        deaf.let_go()
        run.wait_for(lambda: self.connections_made(run) == 2 and not self.is_alive(victim),
                     "its successor registered")
        os.kill(stays, signal.SIGCONT)
        run.wait_for(lambda: len(run.workers()) == 2, "another worker had its place")
        self.assert_as_if_nothing_had_happened(run)

    def is_alive(self, pid):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, 0)
            return True
        return False

    def control_address(self, run):
        host, port = run.coordinator()["control"].rsplit(":", 1)
        return host, int(port)

    def connections_made(self, run):
        return len(events(run, "registered", "worker-1"))

    def test_one_that_is_reset_is_made_again_and_nobody_is_put_out(self):
        self.disturb(sockets.reset)

    def test_one_that_is_closed_is_made_again_and_nobody_is_put_out(self):
        self.disturb(sockets.close_both_ways)


class CutForGood:
    """Cuts the connections of processes to some addresses again and again. `ways`: [(pid,
    address)]"""

    def __init__(self, *ways):
        self.ways = ways
        self.number = self._cut_once()
        self.over = threading.Event()
        self.thread = threading.Thread(target=self._cut)
        self.thread.start()

    def _cut_once(self):
        return sum(sockets.cut(*way) for way in self.ways)

    def _cut(self):
        while not self.over.wait(0.002):
            with contextlib.suppress(OSError):  # one of them has ended
                self._cut_once()

    def mend(self):
        self.over.set()
        self.thread.join()


class DataLink(DisturbedTest):
    def test_one_link_cut_for_good_costs_one_worker_and_does_not_loop(self):
        run = self.start_run(3)
        before = run.status()["members"]
        one, other = before[0]["pid"], before[1]["pid"]
        link = CutForGood((one, sockets.unix_name(other)), (other, sockets.unix_name(one)))
        self.addCleanup(link.mend)
        self.assertGreaterEqual(link.number, 1)
        run.wait_for(lambda: run.status()["generation"] > 1 and
                     run.status()["state"] == "training", "the run went on")
        # The coordinator cannot know that the link broke: the worker that complains first stays.
        evicted = {one, other} - set(run.workers())
        self.assertEqual(len(evicted), 1)
        self.assert_as_if_nothing_had_happened(run)
        self.assert_event(run, "member_died", names=f"pid {evicted.pop()}", says="evicted")
        # The link stays cut. A worker that comes back after a while is evicted again, but then
        # stays out for twice as long.
        times = self.evictions_s(run)
        self.assertGreaterEqual(len(times), 1)
        for i, (before, after) in enumerate(zip(times, times[1:])):
            self.assertGreaterEqual(after - before, BAR_S * 2**i, times)

    def evictions_s(self, run):
        with contextlib.closing(sqlite3.connect(run.run_dir / "journal.db")) as journal:
            rows = journal.execute("SELECT wall_ms FROM events WHERE kind = 'member_died' "
                                   "AND text LIKE '% evicted%' ORDER BY id")
            return [wall_ms / 1000 for wall_ms, in rows]


if __name__ == "__main__":
    unittest.main()
