"""The loop over epochs as a script sees it (lockstep/_epochs.py), and the number that it gives."""
import copy
import json
import numbers
import pickle
import unittest

from lockstep import Misuse
from lockstep._epochs import EDGE, Epoch, Epochs
from lockstep._errors import fails_alike

DATA = object()
GIVEN = (DATA, None, None, None, ("d", "g"))


class OfRun:
    """A run's one loop: epochs from `first` on, of two batches each."""

    def __init__(self, epochs, first=0, count=3):
        self.epochs, self.replies = epochs, []
        self.loop = self._loop(first, count)

    def _loop(self, first, count):
        yield "trial"
        for epoch in range(first, count):
            for batch in ("a", "b"):
                self.epochs.computes(epoch)
                yield batch
            self.epochs.begins_edge(epoch, epoch + 1 == count)
            yield EDGE
            self.epochs.ends_edge()
            self.replies.append(epoch)
        self.replies.append("end")


def passes(epochs, run):
    """The script's view: (epoch before, batches, epoch after, replies to EDGE until then)"""
    seen, is_first = [], True
    for epoch in epochs:
        before = int(epoch)
        part = epochs.first(run.loop, GIVEN) if is_first else epochs.again(GIVEN)
        is_first = False
        seen.append((before, list(part), int(epoch), list(run.replies)))
    return seen


class EpochsTest(unittest.TestCase):
    def test_each_inner_loop_ends_with_its_epoch_and_the_code_after_it_precedes_the_reply(self):
        epochs = Epochs()
        run = OfRun(epochs)
        self.assertEqual(passes(epochs, run), [(0, ["trial", "a", "b"], 0, []), (1, ["a", "b"], 1, [0]),
                                               (2, ["a", "b"], 2, [0, 1])])
        self.assertEqual(run.replies, [0, 1, 2, "end"])

    def test_a_process_that_joins_begins_with_the_epoch_of_the_run(self):
        epochs = Epochs()
        self.assertEqual([(before, after) for before, _, after, _ in passes(epochs, OfRun(epochs, 1))],
                         [(0, 1), (2, 2)])

    def test_an_edge_at_which_the_script_ends_the_run_is_the_last(self):
        epochs = Epochs()
        run = OfRun(epochs, count=1)
        epochs.finishes()  # in a loop's body it is the step that ends the run
        for epoch in epochs:
            self.assertEqual(["trial", "a", "b"], list(epochs.first(run.loop, GIVEN)))
            epochs._is_last = False  # what the run did not know
            epochs.finishes()
        self.assertEqual(run.replies, [0, "end"])

    def test_one_that_comes_when_all_is_done_has_no_epoch(self):
        epochs = Epochs()
        with self.assertRaises(SystemExit) as left:
            passes(epochs, OfRun(epochs, 3))
        self.assertEqual(left.exception.code, 0)

    def test_loops_that_are_left_or_missing_are_refused(self):
        for body, text in ((lambda epochs, run: next(epochs.first(run.loop, GIVEN)), "left before"),
                           (lambda epochs, run: None, "no loop over run.batches")):
            epochs = Epochs()
            run = OfRun(epochs)
            next(epochs)
            body(epochs, run)
            with self.assertRaisesRegex(Misuse, text):
                next(epochs)

    def test_other_data_and_a_second_loop_are_refused(self):
        epochs = Epochs()
        run = OfRun(epochs)
        with self.assertRaisesRegex(Misuse, "before the loop over run.epochs"):
            epochs.first(run.loop, GIVEN)
        next(epochs)
        part = epochs.first(run.loop, GIVEN)
        next(part)
        with self.assertRaisesRegex(Misuse, "twice in one epoch"):
            epochs.again(GIVEN)
        list(part)
        for other in ((object(), None, None, None), (DATA, 2, None, None)):
            with self.assertRaisesRegex(Misuse, "other data"):
                epochs.again(other)

    def test_only_what_fails_between_two_epochs_fails_alike(self):
        epochs = Epochs()
        run = OfRun(epochs)
        next(epochs)
        part = epochs.first(run.loop, GIVEN)
        next(part)
        for is_alike in (False, True):
            error = ValueError("x")
            epochs.note_failure(error, 3)
            self.assertEqual(fails_alike(error), is_alike)
            list(part)
        error = MemoryError()
        epochs.note_failure(error, 3)
        self.assertFalse(fails_alike(error))
        next(epochs)
        next(epochs.again(GIVEN))
        error = ValueError("in the next epoch")
        epochs.note_failure(error, 3)
        self.assertFalse(fails_alike(error))


class EpochTest(unittest.TestCase):
    def test_it_is_a_number_wherever_an_int_is_one(self):
        epoch = Epoch()
        epoch.now = 3
        self.assertIsInstance(epoch, numbers.Integral)
        self.assertEqual([epoch + 1, 1 + epoch, epoch - 1, 5 - epoch, 2 * epoch, epoch / 2, epoch // 2,
                          7 % epoch, epoch % 2, 2 ** epoch, -epoch, abs(epoch), 0.5 * epoch],
                         [4, 4, 2, 2, 6, 1.5, 1, 1, 1, 8, -3, 3, 1.5])
        self.assertTrue(epoch == 3 and 3 == epoch and epoch in (1, 3) and epoch < 4 <= epoch + 1)
        self.assertEqual((f"{epoch} {epoch:02d}", "%d" % epoch, str(epoch)), ("3 03", "3", "3"))
        self.assertEqual((list(range(epoch)), "abcd"[epoch], {3: "x"}[epoch]), ([0, 1, 2], "d", "x"))
        self.assertEqual(float(epoch), 3.0)
        for same in (copy.deepcopy(epoch), pickle.loads(pickle.dumps(epoch))):
            self.assertIs(type(same), int)
            self.assertEqual(same, 3)
        with self.assertRaises(TypeError):  # it says so at once, and not where a worker has joined
            json.dumps(epoch)
        self.assertFalse(Epoch())


if __name__ == "__main__":
    unittest.main()
