"""The arguments of batches()."""
import unittest

from lockstep import Misuse
from lockstep._batches import check_arguments, outer_loop


class Arguments(unittest.TestCase):
    def refuse(self, has_data, *arguments, says):
        with self.assertRaisesRegex(Misuse, says):
            check_arguments({"has_data": has_data}, *arguments)

    def test_the_data_are_named_once(self):
        self.refuse("0", None, None, None, says="no data set.*data.train.path")
        self.refuse("1", [1], None, None, says="leave one of the two out")
        self.refuse("1", None, 2, None, says="data.threads")
        self.refuse("1", None, None, list, says="script's own")
        check_arguments({"has_data": "1"}, None, None, None)
        check_arguments({"has_data": "0"}, [1], 2, list)

    def test_an_epoch_loop_around_the_loop_is_found_before_it_trains(self):
        loop = """
def train(run, data):
    for x in data: pass
    for epoch in range(2):
        if epoch:
            for x, y in run.batches(
                    data,
                    workers=2):
                y
        print(epoch)
for _ in range(3):
    def inner(run):
        for x in run.batches(1): x
"""
        plain = loop.replace("for epoch in range(2):", "while run:")
        self.assertEqual(4, outer_loop(loop, 6))
        deeper = loop.replace("            for x, y", "            with run:\n              for x, y")
        self.assertEqual(4, outer_loop(deeper, 7))
        self.assertIsNone(outer_loop(plain, 6))
        self.assertIsNone(outer_loop(loop, 13), "it is another function")
        self.assertIsNone(outer_loop("for x in run.batches(1): x\n", 1))
        self.assertIsNone(outer_loop("for i in range(3): i\nfor x in run.batches(1):\n  x\n", 2))


if __name__ == "__main__":
    unittest.main()
