"""The table of hostile files (tests/unit/data/HOSTILE.md) names existing tests and fuzzers, and
leaves out no format, no other file that Lockstep reads, and no fuzzer. Each fuzzer has seeds."""
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "tests/unit/data/HOSTILE.md"
TESTS = ("tests/unit/data", "tests/unit/source", "tests/unit/store", "tests/unit/run/checkpoint")
# Rows for files besides the formats that a job can name, by the beginning of the row.
OTHERS = ("Parquet", "data elsewhere", "documents of Arrow's lists", "the index in the cache",
          "an inflated copy in the cache", "ends of documents in the cache",
          "the largest token in the cache", "a piece of an object in the cache", "`pack.json`")
NOT_OF_DATA = {"frames", "manifest", "state_table", "job_file", "exported"}


def named_tests():
    """The tests that the table names: (suite, test, parameter or None)."""
    for name in re.findall(r"`([\w/]+\.\w+(?:/\w+)?)`", PAGE.read_text()):
        if name.endswith((".h", ".md", ".py", ".json")):
            continue
        suite, test = name.split(".")
        test, _, parameter = test.partition("/")
        yield suite.rpartition("/")[2], test, parameter or None


def named_python_tests():
    """The Python tests that the page names: file, class and test."""
    return re.findall(r"`(\w+_test)\.(\w+)\.(test_\w+)`", PAGE.read_text())


def rows():
    """The cells of the first table, without its head."""
    table = PAGE.read_text().split("| format |")[1].split("\n\n")[0].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table]


class Hostile(unittest.TestCase):
    def test_every_test_that_is_named_exists(self):
        sources = "\n".join(path.read_text() for top in TESTS
                            for path in sorted((ROOT / top).rglob("*.[ch]*")))
        there = set(re.findall(r"(?:TEST|TEST_F|TEST_P|RC_GTEST_PROP)\(\s*(\w+),\s*(\w+)", sources))
        parameters = set(re.findall(r'"(\w+)"', (ROOT / TESTS[0] / "hostile_formats.h").read_text()))
        for suite, test, parameter in named_tests():
            with self.subTest(test=f"{suite}.{test}/{parameter}"):
                self.assertTrue((suite, test) in there, "there is no such test")
                self.assertTrue(parameter is None or parameter in parameters, "no such format")
        self.assertGreater(len(list(named_tests())), 60)

    def test_every_test_in_python_that_is_named_exists(self):
        for file, suite, test in named_python_tests():
            with self.subTest(test=f"{file}.{suite}.{test}"):
                text = (ROOT / "tests/multiproc" / f"{file}.py").read_text()
                of_class = text.split(f"\nclass {suite}(")[1].split("\nclass ")[0]
                self.assertIn(f"    def {test}(self):", of_class)
        self.assertGreater(len(named_python_tests()), 4)

    def test_no_other_file_that_is_read_is_missing(self):
        for what in OTHERS:
            self.assertEqual(len([row for row in rows() if row[0].startswith(what)]), 1, what)

    def test_no_format_is_missing(self):
        text = (ROOT / "comm/run/job/data_formats.h").read_text()
        formats = re.findall(r'\.name = "(\w+)"', text)
        told = {name for row in rows() for name in re.findall(r"`(\w+)`", row[0])}
        self.assertEqual(set(formats) - {"auto"} - told, set())

    def fuzzers(self):
        text = (ROOT / "tests/fuzz/CMakeLists.txt").read_text()
        return set(re.findall(r"lockstep_fuzz\((\w+)", text))

    def test_every_fuzzer_that_is_named_is_built_and_every_data_fuzzer_is_named(self):
        named = {name for row in rows() for name in re.findall(r"`(\w+)`", row[6])}
        self.assertEqual(named - self.fuzzers(), set())
        self.assertEqual(self.fuzzers() - named, NOT_OF_DATA)

    def test_every_fuzzer_begins_with_seeds_and_no_seeds_are_of_none(self):
        corpus = ROOT / "tests/fuzz/corpus"
        self.assertEqual({path.name for path in corpus.iterdir() if any(path.iterdir())},
                         self.fuzzers())


if __name__ == "__main__":
    unittest.main()
