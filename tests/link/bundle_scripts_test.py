"""deploy/bundle.sh takes scripts along for a machine with a GPU. Each script finds the modules that
it imports in the bundle, in Python itself, or in torch's wheel."""
import ast
import pathlib
import re
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
OTHERS = {"torch", "numpy"}  # of the machine's own Python


def taken():
    """The Python files that the script copies, from its lines `cp "$root"/PATTERN`."""
    lines = re.findall(r'(?m)^\s*cp "\$root"/(\S+) ', (ROOT / "deploy/bundle.sh").read_text())
    for line in lines:
        choices = re.search(r"\{(.*?)\}", line)
        for choice in choices[1].split(",") if choices else [""]:
            pattern = re.sub(r"\{.*?\}", choice, line)
            yield from (path for path in ROOT.glob(pattern) if path.suffix == ".py")


def imported(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (name.name.split(".")[0] for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield node.module.split(".")[0]


class BundleScripts(unittest.TestCase):
    def test_they_find_what_they_import(self):
        files = list(taken())
        self.assertIn(ROOT / "tests/gpu/suite.py", files)
        there = {path.stem for path in files} | set(sys.stdlib_module_names) | OTHERS
        missing = [f"{path.name}: {name}" for path in files for name in imported(path) if name not in there]
        self.assertEqual(missing, [])


if __name__ == "__main__":
    unittest.main()
