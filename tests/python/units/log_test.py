"""The arguments of run.log() and the lines that it writes, in one process and through a change of
the writer."""
import contextlib
import io
import json
import os
import pathlib
import tempfile
import unittest
from types import SimpleNamespace
from unittest import mock

import torch

from lockstep import Misuse
from lockstep._log import MOST_NAMES, NAME_CHARS, TEXT_CHARS, Log


def order(generation, step, is_writer=True, is_again=False):
    """The order for a slot or an apply of `step`, from 0."""
    return SimpleNamespace(generation=generation, step=step, is_writer=is_writer, is_again=is_again,
                           task=SimpleNamespace(step=step))


class LogTest(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.path = pathlib.Path(directory.name) / "script_log.jsonl"
        self.log = self.made()

    def made(self):
        log = Log(self.path)
        self.addCleanup(log.end)
        return log

    def apply(self, step, log=None, generation=1, is_writer=True, **values):
        log = log or self.log
        the_order = order(generation, step, is_writer)
        log.applies(the_order)
        log.put(values)
        log.applied(the_order)

    def rows(self):
        rows = [json.loads(line) for line in self.path.read_text().splitlines()]
        for row in rows:
            self.assertRegex(row.pop("crc"), "^[0-9a-f]{8}$")
        return rows

    def steps(self):
        return [row["step"] for row in self.rows()]

    def test_values_of_body_and_apply_are_one_line(self):
        self.log.slot(order(1, 0))
        self.log.put({"loss": torch.tensor(0.5), "name": "a\n\"b\"\u00e9\ud800"})
        self.log.close()
        self.log.slot(order(1, 0))
        self.log.put({"loss": 0.25, "seen": 2**60, "is_late": True})
        self.apply(0, norm=torch.ones(1, dtype=torch.bfloat16))
        self.assertEqual(self.rows(), [{"step": 1, "loss": 0.25, "name": "a\n\"b\"\u00e9?",
                                        "seen": 2**60, "is_late": 1, "norm": 1.0}])

    def test_a_slot_that_is_computed_again_counts_once(self):
        self.log.slot(order(1, 0))
        self.log.put({"of_a_dead_generation": 1})
        self.log.slot(order(2, 0))
        self.log.put({"x": 2})
        self.log.slot(order(2, 0, is_again=True))
        self.log.put({"x": 3})
        self.apply(0, generation=2)
        self.assertEqual(self.rows(), [{"step": 1, "x": 2}])
        self.apply(1, generation=2)
        self.assertEqual(self.steps(), [1], "a step without values has no line")

    def test_what_cannot_be_logged_is_said_by_name(self):
        with self.assertRaisesRegex(Misuse, "outside of the loop"):
            self.log.put({"x": 1})
        self.log.slot(order(1, 0))
        for values, text in (({"x": None}, "'None' for x"),
                             ({"x": torch.ones(2)}, "several numbers for x"), ({"": 1}, "a name is"),
                             ({"step": 1}, "'step'"), ({"crc": 1}, "'crc'"),
                             ({"a\nb": 1}, "printable"), ({3: 1}, "'3'"),
                             ({"x" * (NAME_CHARS + 1): 1}, f"1 to {NAME_CHARS}"),
                             ({"x": "y" * (TEXT_CHARS + 1)}, f"takes {TEXT_CHARS}"),
                             ({"x": 1 << 63}, "for x"), ({"x": [1]}, "for x"),
                             ({f"x{i}": i for i in range(MOST_NAMES + 1)}, "names in a step")):
            with self.subTest(text), self.assertRaisesRegex(Misuse, text):
                self.log.put(values)
        self.log.mute()
        self.log.put({"of_the_trial": 1})
        self.apply(0, y=1)
        self.assertEqual(self.rows(), [{"step": 1, "y": 1}])

    def test_a_number_that_is_none_is_null_in_the_file_and_told_once(self):
        heard, told = [], io.StringIO()
        self.log.on_log(lambda step, values: heard.append(values["x"]))
        with contextlib.redirect_stderr(told):
            for step, x in enumerate((torch.tensor(float("nan")), float("-inf"), 0.5)):
                self.apply(step, x=x, y="nan")
        self.assertEqual(self.rows(), [{"step": 1, "x": None, "y": "nan"},
                                       {"step": 2, "x": None, "y": "nan"},
                                       {"step": 3, "x": 0.5, "y": "nan"}])
        self.assertEqual(str(heard), "[nan, -inf, 0.5]")
        self.assertEqual(told.getvalue().count("no finite number for x;"), 1)

    def test_the_next_writer_adds_what_the_dead_one_had_not_written(self):
        next_one = self.made()
        heard = []
        next_one.on_log(lambda step, values: heard.append((step, values["x"])))
        for step in range(3):
            self.apply(step, next_one, is_writer=False, x=step)
            if step < 2:
                self.apply(step, x=step)
        with open(self.path, "a") as file:
            file.write('{"step":3,"x')  # it died in the middle of its line
        self.assertEqual(heard, [])
        self.apply(3, next_one, generation=2, x=3)
        self.assertEqual(self.steps(), [1, 2, 3, 4])
        self.assertEqual(heard, [(3, 2), (4, 3)])
        self.apply(2, x="of a writer that was stopped and is not dead")
        self.assertEqual(self.steps(), [1, 2, 3, 4])
        self.assertEqual([path.name for path in self.path.parent.iterdir()], [self.path.name])

    def test_what_is_logged_between_two_epochs_has_a_line_after_that_of_its_step(self):
        self.log.applies(order(1, 4))
        self.log.put({"a": 1})
        self.log.applied(order(1, 4))
        self.cross(self.log, order(1, 5), {"a": 2})
        self.assertEqual(self.rows(), [{"step": 5, "a": 1}, {"step": 5, "edge": True, "a": 2}])
        other = self.made()  # the writer has died; this one has the state before the edge, or after
        self.cross(other, order(2, 5), {"a": 3})
        self.assertEqual(self.rows(), [{"step": 5, "a": 1}, {"step": 5, "edge": True, "a": 3}])
        third = self.made()
        third.applies(order(3, 5))
        third.put({"a": 4})
        third.applied(order(3, 5))
        self.assertEqual(self.rows()[1:], [{"step": 5, "edge": True, "a": 3}, {"step": 6, "a": 4}])

    def cross(self, log, at, values):
        log.crosses(at)
        log.put(values)
        log.crossed(at)

    def test_a_checkpoint_brings_what_the_dead_writer_had_not_written_of_the_last_step(self):
        next_one, heard = self.made(), []
        next_one.on_writer(lambda: (heard.append("writer"), next_one.put({"x": "of no step"})))
        next_one.on_log(lambda step, values: heard.append(step))
        for step in range(2):
            self.apply(step, next_one, is_writer=False, x=step)
        self.apply(0, x=0)
        next_one.describes(order(0, 2, is_writer=False))  # for a worker that joins
        self.assertEqual(self.steps(), [1])
        for _ in range(2):
            next_one.describes(order(2, 2))
            self.assertEqual((self.steps(), heard), ([1, 2], ["writer", 2]))

    def test_lines_beyond_the_state_are_cut(self):
        for step in range(5):
            self.apply(step, x=step)
        self.log.installed()
        self.apply(2, generation=2, x="again")
        self.assertEqual([(row["step"], row["x"]) for row in self.rows()],
                         [(1, 0), (2, 1), (3, "again")])
        fresh = self.made()
        self.apply(0, fresh, generation=3, x="afresh")
        self.assertEqual(self.steps(), [1])

    def taken_over(self, content, applied=8):
        """The steps that another process finds in the file, what it says, and what it keeps aside."""
        self.path.write_bytes(content)
        aside, told = self.path.with_name(self.path.name + ".damaged"), io.StringIO()
        aside.unlink(missing_ok=True)
        log = self.made()
        with contextlib.redirect_stderr(told):
            self.apply(applied, log, x=applied)
        log.end()
        return self.steps()[:-1], told.getvalue(), aside.read_bytes() if aside.exists() else b""

    def test_a_flipped_bit_anywhere_costs_the_lines_that_it_is_in(self):
        for step in range(4):
            self.apply(step, x=step, name="a")
        whole = self.path.read_bytes()
        lines = whole.splitlines(keepends=True)
        for at in range(len(whole)):
            for bit in (1, 128):
                flipped = bytearray(whole)
                flipped[at] ^= bit
                steps, told, aside = self.taken_over(bytes(flipped))
                hit = whole[:at].count(b"\n") + 1
                at_end = at == sum(map(len, lines[:hit])) - 1
                lost = {hit, hit + 1} if at_end else {hit}
                with self.subTest(at=at, bit=bit):
                    self.assertEqual(steps, [n for n in (1, 2, 3, 4) if n not in lost])
                    if at < len(whole) - 1:
                        self.assertIn(f"{self.path} is damaged", told)
                        self.assertEqual(aside.count(b"\n"), flipped.count(b"\n") - 4 + len(lost))

    def test_a_piece_that_is_cut_out_costs_the_lines_at_its_ends(self):
        for step in range(4):
            self.apply(step, x=step)
        whole = self.path.read_bytes()
        length = len(whole) // 4
        steps, told, aside = self.taken_over(whole[:length // 2] + whole[length + length // 2:])
        self.assertEqual(steps, [3, 4])
        self.assertIn("1 of its lines", told)
        self.assertEqual(aside, whole[:length // 2] + whole[length + length // 2:2 * length])
        steps, told, aside = self.taken_over(whole[:-10])
        self.assertEqual((steps, aside), ([1, 2, 3], whole[3 * length:-10] + b"\n"))
        steps, told, aside = self.taken_over(whole[:-10], applied=2)
        self.assertEqual((steps, told, aside), ([1, 2], "", b""), "a step that comes again is no loss")

    def test_lines_of_an_older_version_have_no_check_and_are_taken(self):
        steps, told, aside = self.taken_over(b'{"step":1,"x":1}\n{"step":2,"x":2}\nx\n{"step":4,"x":1}\n')
        self.assertEqual((steps, aside), ([1, 2, 4], b"x\n"))
        self.assertEqual(self.taken_over(self.path.read_bytes()), ([1, 2, 4], "", b""), "now they have")
        steps, told, aside = self.taken_over(self.path.read_bytes() + b'{"step":8,"x":1}\n', 7)
        self.assertEqual((steps, aside), ([1, 2, 4], b'{"step":8,"x":1}\n'))

    def test_lines_out_of_order_are_kept_aside(self):
        for step in range(3):
            self.apply(step, x=step)
        whole = self.path.read_bytes()
        steps, told, aside = self.taken_over(whole + whole)
        self.assertEqual((steps, aside), ([1, 2, 3], whole))

    def test_the_file_and_its_name_are_on_the_disk_before_a_checkpoint(self):
        calls, sizes = [], []
        fsync, replace = os.fsync, os.replace

        def note_sync(fd):
            calls.append("directory" if os.path.isdir(f"/proc/self/fd/{fd}") else "file")
            sizes.append(os.fstat(fd).st_size)
            fsync(fd)
        with mock.patch("os.fsync", note_sync), \
                mock.patch("os.replace", lambda *names: (calls.append("replace"), replace(*names))):
            self.apply(0, x=0)
            self.assertEqual(calls, ["file", "replace", "directory"])
            self.apply(1, x=1)
            self.log.describes(order(1, 2, is_writer=False))
            self.assertEqual(len(calls), 3, "who is no writer has none")
            self.log.describes(order(1, 2))
        self.assertEqual(calls[3:], ["file"])
        self.assertEqual(sizes[-1], self.path.stat().st_size)

    def test_a_file_that_cannot_be_written_ends_nothing(self):
        heard = []
        self.log.on_log(lambda step, values: heard.append(step))
        self.path.mkdir()
        self.apply(0, x=0)
        self.apply(1, x=1)
        self.path.rmdir()
        self.apply(2, x=2)
        self.assertEqual(self.steps(), [1, 2, 3], "held meanwhile")
        self.assertEqual(heard, [1, 2, 3])

    def test_on_writer_is_called_once_before_the_first_step_as_writer(self):
        called = []
        self.log.on_writer(lambda: called.append((self.log.is_writer, len(called))))
        self.apply(0, is_writer=False)
        self.assertEqual((called, self.log.is_writer), ([], False))
        self.apply(1, generation=2)
        self.apply(2, generation=2)
        self.apply(3, generation=3, is_writer=False)
        self.assertFalse(self.log.is_writer)
        self.apply(4, generation=4)
        self.assertEqual(called, [(True, 0)])

    def test_alone_there_are_callbacks_and_no_file(self):
        log, heard = Log(None), []
        log.on_log(lambda step, values: heard.append((step, values)))
        self.apply(0, log, x=1)
        self.assertEqual(heard, [(1, {"x": 1})])
        self.assertFalse(self.path.exists())


if __name__ == "__main__":
    unittest.main()
