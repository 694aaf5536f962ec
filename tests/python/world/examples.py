"""The loops of deploy/examples/loops at a small size, and how much of each is not plain PyTorch."""
import ast
import re
import shlex
import shutil

from harness import ROOT
from script_runs import SCRIPTS, ScriptTest

LOOPS = ROOT / "deploy/examples/loops"
STEPS = 6


def block_of(script):
    return re.search(r"^# /// lockstep\n(#.*\n)*?# ///\n", script, re.MULTILINE)[0]


def other_lines(script):
    """Lines that are not plain PyTorch: the block, and what names lockstep or `run`, with the whole of a
    call that takes several lines."""
    lines = set()
    for node in ast.walk(ast.parse(script)):
        if isinstance(node, ast.Import) and any(name.name == "lockstep" for name in node.names):
            lines.add(node.lineno)
        if isinstance(node, ast.Name) and node.id in ("lockstep", "run"):
            lines.add(node.lineno)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and \
                isinstance(node.func.value, ast.Name) and node.func.value.id in ("lockstep", "run"):
            lines.update(range(node.lineno, node.end_lineno + 1))
    return len(block_of(script).splitlines()) + len(lines)


class ExampleTest(ScriptTest):
    def setUp(self):
        super().setUp()
        self.loops = self.scratch / "loops"
        shutil.copytree(LOOPS, self.loops, ignore=shutil.ignore_patterns("__pycache__"))

    def all_alone(self, words_of):
        """The output of each of these loops alone: {name: output}. One process imports torch
        once."""
        commands = [shlex.join([str(self.loops / f"{name}.py"), *map(str, words)])
                    for name, words in words_of.items()]
        codes = self.alone(SCRIPTS / "run_each.py", *commands, TRAIN__MAX_STEPS=str(STEPS))
        found = {name: (self.loops / f"{name}.py.out").read_text() for name in words_of}
        self.assertEqual(codes.split("codes ")[1].split(), ["0"] * len(found), found)
        return found

    def assert_same_with_two_workers(self, name, words, alone, kills=()):
        """Workers that kill themselves end without the last line."""
        run = self.start_script(self.loops / f"{name}.py", words, 2, overrides=[f"train.max_steps={STEPS}"])
        self.assertEqual(run.wait(), 0, run.text()[-3000:])
        self.assertEqual(len(run.history()), STEPS)
        self.assertIn(f"weights_sha256 {run.summary()['weights_sha256']}", alone)
        *_, measured = (line for line in alone.splitlines() if not line.startswith("lockstep:"))
        self.assertRegex(measured, r"(held-out loss|accuracy|brightness|letter error rate) -?\d")
        logs = [path.read_text().splitlines() for path in (run.run_dir / "logs").glob("worker-*.stderr")]
        ended = [lines for lines in logs if measured in lines]
        self.assertGreaterEqual(len(ended), 1 if kills else 2, logs)
        return run
