"""Files that a script opens before its data processes are forked, and samples that do not come."""

from __future__ import annotations

import os
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from typing import Any

from data_support import started, task

from lockstep._data import DataError, Task
from lockstep._data import _feed as feed_module
from lockstep._data._files import check_files, open_again, open_files

ROWS = 600


class Rows:
    """Each row of a file that was opened once, by a seek and a read."""

    def __init__(self, path: str, buffering: int) -> None:
        self.file: Any = open(path, "rb", buffering=buffering)  # noqa: SIM115: it stays open

    def __len__(self) -> int:
        return ROWS

    def __getitem__(self, index: int) -> int:
        self.file.seek(index * 8)
        time.sleep(0)  # whoever shares the offset may move it here
        first, second = struct.unpack("<ii", self.file.read(8))
        return first if first == second else -1


STUCK = """
import os, time
from data_support import Numbers, started, task
from lockstep._data import _feed
_feed._LONG_WAIT_S = 0.2
def endless_sample(index):
    while index == 5 and os.getpid() != MAIN: time.sleep(0.05)
MAIN = os.getpid()
feed = started(Numbers(hook=endless_sample), 2)
feed.take(task(0))
"""


class FilesTest(unittest.TestCase):
    def setUp(self) -> None:
        with tempfile.NamedTemporaryFile(delete=False) as file:
            file.write(b"".join(struct.pack("<ii", i + 1, i + 1) for i in range(ROWS)))
        self.path = file.name
        self.addCleanup(os.unlink, self.path)

    def test_each_data_process_reads_by_an_offset_of_its_own(self) -> None:
        for buffering in (0, 4096):
            rows = Rows(self.path, buffering)
            rows[3]  # its offset stands somewhere
            place = os.lseek(rows.file.fileno(), 0, os.SEEK_CUR)
            feed = started(rows, 3)
            for step in range(50):
                feed.request(task(step, 12, ROWS))
            for step in range(50):
                asked = task(step, 12, ROWS)
                self.assertEqual(feed.take(asked).value.tolist(), [i + 1 for i in asked.indices])
            self.assertEqual(os.lseek(rows.file.fileno(), 0, os.SEEK_CUR), place, "nobody moved ours")
            feed.close()
            rows.file.close()

    def test_a_process_that_is_forked_later_reads_on_where_the_file_stood(self) -> None:
        rows = Rows(self.path, 20)
        self.addCleanup(rows.file.close)
        rows[0]  # 20 bytes are in its buffer
        feed = started(rows, 1)
        self.addCleanup(feed.close)
        os.lseek(rows.file.fileno(), 0, os.SEEK_SET)  # as the script may read on
        os.kill(feed._pool.processes[0].pid, signal.SIGKILL)
        self.assertEqual(feed.take(Task(0, 0, 0, [2], [2])).value.tolist(), [3])  # bytes 16 to 24

    def test_a_file_without_a_name_is_opened_again_too(self) -> None:
        rows = Rows(self.path, 0)
        self.addCleanup(rows.file.close)
        os.rename(self.path, self.path + ".old")
        os.link(self.path + ".old", self.path)
        os.unlink(self.path + ".old")
        check_files(open_files())

    def test_a_file_that_cannot_be_opened_again_is_named(self) -> None:
        rows = Rows(self.path, 0)
        self.addCleanup(rows.file.close)
        found = [file for file in open_files() if file.descriptor == rows.file.fileno()]
        with self.assertRaises(DataError) as caught:
            check_files([found[0]._replace(flags=os.O_DIRECTORY)])  # as no file can be opened
        self.assertEqual(caught.exception.code, 64)
        self.assertIn(self.path, caught.exception.text)

    def test_a_file_that_another_thread_closes_meanwhile_is_left_alone(self) -> None:
        """IPython's history thread closes one. The number may be another file's by then."""
        with tempfile.TemporaryFile(buffering=0) as other:
            other.write(b"another file")
            for is_replaced in (False, True):
                descriptor = os.open(self.path, os.O_RDONLY)
                found = [file for file in open_files() if file.descriptor == descriptor]
                os.close(descriptor)
                if is_replaced:
                    os.dup2(other.fileno(), descriptor)
                check_files(found)
                check_files([found[0]._replace(flags=os.O_DIRECTORY)])
                open_again(found)
                self.assertEqual(os.lseek(other.fileno(), 0, os.SEEK_CUR), 12, "nobody moved it")
            os.close(descriptor)

    def test_samples_that_do_not_come_are_named_with_where_their_process_stands(self) -> None:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        child = subprocess.Popen([sys.executable, "-c", STUCK], stderr=subprocess.PIPE, text=True,
                                 env=environment)
        found: list[str] = []
        said = threading.Event()

        def read() -> None:
            for line in child.stderr:
                found.append(line)
                if "endless_sample" in line:
                    said.set()

        reader = threading.Thread(target=read)
        reader.start()
        try:
            self.assertTrue(said.wait(60), "".join(found))
        finally:
            child.kill()
            child.wait()
            reader.join()
            child.stderr.close()
        text = "".join(found)
        self.assertRegex(text, r"data process \d+ has not computed the samples at .*waits for them")
        self.assertLess(text.index("data process"), text.index("endless_sample"))
        self.assertGreater(feed_module._LONG_WAIT_S, 1)
        self.assertLess(feed_module._LONG_WAIT_S, 30)


if __name__ == "__main__":
    unittest.main()
