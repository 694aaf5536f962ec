"""The package's own parts, by a Python that has torch: every file of units/."""
import subprocess
import sys
import unittest

from script_runs import HERE, ScriptTest


class Units(ScriptTest):
    def test_every_file(self):
        for file in sorted((HERE / "units").glob("*_test.py")):
            with self.subTest(file.stem):
                done = subprocess.run(
                    [self.python, "-m", "unittest", file.stem], text=True, timeout=600,
                    stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=file.parent,
                    env={**self.environment(), "OMP_NUM_THREADS": "1"})
                print(done.stdout[-20000:] if done.returncode else
                      f"{file.stem}: {done.stdout.splitlines()[-3]}", file=sys.stderr)
                self.assertEqual(done.returncode, 0)


if __name__ == "__main__":
    unittest.main()
