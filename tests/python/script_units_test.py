"""The package's own parts, by a Python that has torch: every file of units/."""
import sys
import unittest

from script_runs import HERE, SCRIPTS, ScriptTest
from stand_in import device_variables

UNITS = HERE / "units"


class Units(ScriptTest):
    def environment(self, env=None, slot_ms=None):
        return {**super().environment(env, slot_ms), "OMP_NUM_THREADS": "1",
                **device_variables(self.scratch), "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}

    def test_every_file(self):
        """Each in a process of its own; torch is imported once."""
        names = sorted(path.stem for path in UNITS.glob("*_test.py"))
        scripts = [self.write_script(f"import sys, unittest\nsys.path.insert(0, {str(UNITS)!r})\n"
                                     f"unittest.main({name!r})\n", f"{name}.py") for name in names]
        *_, codes = self.alone(SCRIPTS / "run_each.py", *scripts).splitlines()
        for script, code in zip(scripts, map(int, codes.split()[1:]), strict=True):
            with self.subTest(script.stem):
                output = script.with_suffix(".py.out").read_text()
                print(output[-20000:] if code else f"{script.stem}: {output.splitlines()[-3]}",
                      file=sys.stderr)
                self.assertEqual(code, 0)


if __name__ == "__main__":
    unittest.main()
