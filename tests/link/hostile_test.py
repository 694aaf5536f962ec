"""The table of hostile files (tests/unit/data/HOSTILE.md) names tests and fuzzers that are there, and
leaves out no format."""
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "tests/unit/data/HOSTILE.md"
TESTS = ("tests/unit/data", "tests/unit/checkpoint")


def named_tests():
    """Of the table: (suite, test, parameter or None)."""
    for name in re.findall(r"`([\w/]+\.\w+(?:/\w+)?)`", PAGE.read_text()):
        if name.endswith((".h", ".md", ".py")):
            continue
        suite, test = name.split(".")
        test, _, parameter = test.partition("/")
        yield suite.rpartition("/")[2], test, parameter or None


def rows():
    """The cells of the first table, without its head."""
    table = PAGE.read_text().split("| format |")[1].split("\n\n")[0].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table]


class Hostile(unittest.TestCase):
    def test_every_test_that_is_named_exists(self):
        sources = "\n".join(path.read_text() for top in TESTS
                            for path in sorted((ROOT / top).glob("*.[ch]*")))
        there = set(re.findall(r"(?:TEST|TEST_F|TEST_P|RC_GTEST_PROP)\(\s*(\w+),\s*(\w+)", sources))
        parameters = set(re.findall(r'"(\w+)"', (ROOT / TESTS[0] / "hostile_formats.h").read_text()))
        for suite, test, parameter in named_tests():
            with self.subTest(test=f"{suite}.{test}/{parameter}"):
                self.assertTrue((suite, test) in there, "there is no such test")
                self.assertTrue(parameter is None or parameter in parameters, "no such format")
        self.assertGreater(len(list(named_tests())), 60)

    def test_no_format_is_missing(self):
        text = (ROOT / "comm/wire/data_formats.h").read_text()
        formats = re.findall(r'"(\w+)"', text.split("kDataFormats[] = {")[1].split("}")[0])
        told = {name for row in rows() for name in re.findall(r"`(\w+)`", row[0])}
        self.assertEqual(set(formats) - {"auto"} - told, set())

    def test_every_fuzzer_that_is_named_is_built_and_every_data_fuzzer_is_named(self):
        text = (ROOT / "tests/fuzz/CMakeLists.txt").read_text()
        built = set(re.findall(r"lockstep_fuzz\((\w+)", text))
        named = {name for row in rows() for name in re.findall(r"`(\w+)`", row[6])}
        self.assertEqual(named - built, set())
        of_data = set(re.findall(r"lockstep_fuzz\((\w+) [^)]*DEPS lockstep_data", text))
        self.assertEqual(of_data - named, set())


if __name__ == "__main__":
    unittest.main()
