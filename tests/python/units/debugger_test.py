"""A thread sees whether a debugger has stopped another one."""
import bdb
import os
import pdb
import sys
import threading
import unittest

from lockstep._debugger import Watch, is_stopped


class Stopped(unittest.TestCase):
    def setUp(self):
        self.go_on, self.is_held = threading.Event(), threading.Event()
        self.addCleanup(self.go_on.set)

    def hold(self):
        self.is_held.set()
        self.go_on.wait()

    def start(self, body):
        thread = threading.Thread(target=body, daemon=True)
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(self.go_on.set)
        return thread

    def where(self, thread):
        return sys._current_frames()[thread.ident]

    def traced(self, tracer):
        def body():
            sys.settrace(tracer)
            self.count()
            sys.settrace(None)

        return self.start(body)

    def count(self):
        total = 0
        for i in range(3):
            total += i
        return total

    def test_a_wait_of_its_own_is_none(self):
        thread = self.start(self.hold)
        self.is_held.wait()
        self.assertFalse(is_stopped(self.where(thread)))

    def test_a_function_of_settrace_that_waits(self):
        def tracer(frame, event, _):
            if event == "line":
                self.hold()
            return tracer

        thread = self.traced(tracer)
        self.is_held.wait()
        self.assertTrue(is_stopped(self.where(thread)))

    def test_what_is_traced_and_waits_by_itself(self):
        def tracer(*_):
            return tracer

        def body():
            sys.settrace(tracer)
            self.hold()
            sys.settrace(None)

        thread = self.start(body)
        self.is_held.wait()
        self.assertFalse(is_stopped(self.where(thread)))

    def test_a_debugger_made_of_bdb(self):
        class Mine(bdb.Bdb):
            def user_line(mine, frame):
                self.hold()
                mine.set_continue()

        thread = self.start(lambda: Mine().runcall(self.count))
        self.is_held.wait()
        self.assertTrue(is_stopped(self.where(thread)))

    def test_a_watch_tells_of_pdb_when_it_stops_and_goes_on(self):
        told, changed = [], threading.Condition()

        def note(is_paused):
            with changed:
                told.append(is_paused)
                changed.notify_all()

        def wait_for(count):
            with changed:
                changed.wait_for(lambda: len(told) >= count)

        read, write = os.pipe()
        out_read, out_write = os.pipe()

        def body():
            watch = Watch(note)
            with open(read) as stdin, open(out_write, "w") as stdout:
                pdb.Pdb(stdin=stdin, stdout=stdout, nosigint=True).set_trace()
                wait_for(2)
            watch.close()

        thread = self.start(body)
        wait_for(1)
        os.write(write, b"continue\n")
        thread.join()
        self.assertEqual(told, [True, False])
        os.close(write)
        os.close(out_read)


if __name__ == "__main__":
    unittest.main()
