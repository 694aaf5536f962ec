"""What batches() is called with."""
import unittest

from lockstep import Misuse
from lockstep._batches import check_arguments


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


if __name__ == "__main__":
    unittest.main()
