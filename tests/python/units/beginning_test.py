"""A process's report on its beginning: the hash of the objects that it made, the hash of its code,
and objects made before start(). Also what keeps the process alive after its end."""

from __future__ import annotations

import contextlib
import io
import os
import pathlib
import subprocess
import sys
import tempfile
import textwrap
import unittest
import unittest.mock
from collections.abc import Callable
from typing import Any

import torch
from torch import nn, optim

from lockstep._code import Code
from lockstep._start import _say_made_before
from lockstep._state import Kept
from lockstep._waits import Waits


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.rows = nn.Embedding(50, 4)  # a slot touches a few rows
        self.frozen = nn.Linear(4, 4).requires_grad_(False)
        self.register_buffer("kept", torch.rand(3))
        self.register_buffer("mask", torch.rand(3), persistent=False)
        self.register_buffer("graph", torch.eye(3).to_sparse(), persistent=False)


class StateHashTest(unittest.TestCase):
    def hash(self, change: Callable[[Model], Any] = lambda model: None, lr: float = 0.1) -> str:
        model = Model()
        average = optim.swa_utils.AveragedModel(model)
        change(model)
        kept = Kept()
        kept.keep(model=model, average=average, optimizer=optim.SGD(model.parameters(), lr))
        with torch.no_grad():
            kept.guard()
        return kept.hash()

    def test_two_processes_that_made_the_same_have_one_hash(self) -> None:
        self.assertEqual(self.hash(), self.hash())
        self.assertLessEqual(len(self.hash()), 64)

    @torch.no_grad()
    def test_every_value_counts_that_is_kept(self) -> None:
        changes: dict[str, Callable[[Model], Any]] = {
            "a row that no slot touches": lambda m: m.rows.weight[49].add_(1e-7),
            "frozen": lambda m: m.frozen.bias.add_(1),
            "a buffer": lambda m: m.kept.add_(1),
            "one that no checkpoint has": lambda m: m.mask.add_(1),
            "a sparse one": lambda m: setattr(m, "graph", m.graph * 2),
            "the sign of a zero": lambda m: m.kept.zero_().neg_(),
        }
        hashes = {name: self.hash(change) for name, change in changes.items()}
        hashes["nothing"] = self.hash()
        hashes["zero"] = self.hash(lambda m: m.kept.zero_())
        hashes["a setting"] = self.hash(lr=0.2)
        self.assertEqual(len(set(hashes.values())), len(hashes), hashes)

    def test_an_average_counts(self) -> None:
        def average_of(fill: float) -> str:
            model = Model()
            average = optim.swa_utils.AveragedModel(model)
            with torch.no_grad():
                average.module.rows.weight[0].fill_(fill)
            kept = Kept()
            kept.keep(model=model, average=average, optimizer=optim.SGD(model.parameters(), 0.1))
            return kept.hash()
        self.assertNotEqual(average_of(1), average_of(2))


class CodeTest(unittest.TestCase):
    def setUp(self) -> None:
        folders = [tempfile.TemporaryDirectory() for _ in range(2)]
        for folder in folders:
            self.addCleanup(folder.cleanup)
        self.folders = [pathlib.Path(folder.name) for folder in folders]
        for folder in self.folders:
            self.write(folder, "train.py", "import helper_of_code_test")
            self.write(folder, "helper_of_code_test.py", "x = 1")
            self.write(folder, "venv/site-packages/library_of_code_test.py", "y = 1")
            self.write(folder, "unused.py", "z = 1")

    def write(self, folder: pathlib.Path, name: str, text: str) -> None:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)

    def hash(self, folder: pathlib.Path, modules: tuple[str, ...] = (
            "helper_of_code_test.py", "venv/site-packages/library_of_code_test.py")) -> str:
        """Pretends that the process has imported these."""
        here = {name: type(sys)(pathlib.Path(name).stem) for name in modules}
        for name, module in here.items():
            module.__file__ = str(folder / name)
        with unittest.mock.patch.dict(sys.modules, here):
            return Code().hash(str(folder / "train.py"))

    def test_a_copy_elsewhere_has_the_same_hash(self) -> None:
        self.assertEqual(self.hash(self.folders[0]), self.hash(self.folders[1]))

    def test_the_script_and_its_own_modules_count(self) -> None:
        before = self.hash(self.folders[0])
        self.write(self.folders[0], "unused.py", "z = 2")
        self.write(self.folders[0], "venv/site-packages/library_of_code_test.py", "y = 2")
        self.assertEqual(before, self.hash(self.folders[0]), "neither is the script's own")
        self.write(self.folders[0], "helper_of_code_test.py", "x = 2")
        edited = self.hash(self.folders[0])
        self.assertNotEqual(before, edited)
        self.write(self.folders[0], "train.py", "import helper_of_code_test; print()")
        self.assertNotIn(self.hash(self.folders[0]), (before, edited))

    def test_what_was_noted_is_what_was_imported(self) -> None:
        code, path = Code(), str(self.folders[0] / "train.py")
        code.note_file(path, (self.folders[0] / "train.py").read_bytes())
        self.write(self.folders[0], "train.py", "edited meanwhile")
        self.assertEqual(code.hash(path), Code().hash(str(self.folders[1] / "train.py")))


class BeforeTest(unittest.TestCase):
    def said(self) -> str:
        with contextlib.redirect_stderr(io.StringIO()) as stderr:
            _say_made_before()
        return stderr.getvalue()

    def test_parameters_that_are_there_before_start_are_told(self) -> None:
        model = nn.Linear(2, 2)
        self.assertRegex(self.said(), r"\d+ parameters were made before lockstep.start\(\)")
        del model

    def test_none_are_not(self) -> None:
        done = subprocess.run(
            [sys.executable, "-c", "import torch\nfrom lockstep._start import _say_made_before\n"
             "_say_made_before()"], stderr=subprocess.PIPE, text=True, check=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))})
        self.assertEqual(done.stderr, "")


class ThreadsTest(unittest.TestCase):
    def end_of(self, stays: bool) -> str:
        script = textwrap.dedent(f"""
            import threading, time
            from lockstep import _threads
            _threads.WAIT_S = 0.2
            over = threading.Event()
            def heart_beat():
                while not over.wait(0.05): pass
            threading.Thread(target=heart_beat, name="heart").start()
            threading.Thread(target=lambda: time.sleep(30), daemon=True).start()
            _threads.watch_threads()
            _threads.watch_threads()
            # Where nothing waits for the thread, it is told to end.
            watched = [t for t in threading.enumerate() if t.name == _threads._NAME]
            assert len(watched) == 1
            if {stays}:
                threading.Thread(target=lambda: (watched[0].join(), over.set()), daemon=True).start()
            else:
                over.set()
            """)
        done = subprocess.run([sys.executable, "-c", script], stderr=subprocess.PIPE, text=True,
                              check=True, timeout=120,
                              env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))})
        return done.stderr

    def test_a_thread_that_stays_is_named_with_where_it_stands(self) -> None:
        said = self.end_of(stays=True)
        self.assertIn("its process waits for the thread heart, which goes on", said)
        self.assertIn("in heart_beat", said)

    def test_one_that_ends_is_not(self) -> None:
        self.assertEqual("", self.end_of(stays=False))

    def test_a_worker_says_for_the_terminal_of_the_run_too_what_it_waits_for(self) -> None:
        with tempfile.TemporaryDirectory() as directory, contextlib.redirect_stderr(io.StringIO()) as said:
            logs = pathlib.Path(directory) / "logs"
            logs.mkdir()
            waits = Waits()
            waits.say("alone")
            self.assertEqual([], list(logs.iterdir()))
            waits.begin(str(logs.parent / "script_log.jsonl"))
            waits.say("a data process\nstands")
            waits.say("again")
            lines = (logs / "waits.txt").read_text().splitlines()
        self.assertEqual(2, len(lines))
        self.assertIn(f"pid {os.getpid()}: a data process stands", lines[0])
        self.assertIn("again", lines[1])
        self.assertIn("lockstep: a data process\nstands\n", said.getvalue())

    def test_a_script_that_imports_relatively_is_part_of_its_package(self) -> None:
        with tempfile.TemporaryDirectory() as directory:
            inner = pathlib.Path(directory) / "proj" / "inner"
            inner.mkdir(parents=True)
            for folder in (inner.parent, inner):
                (folder / "__init__.py").touch()
            (inner / "net.py").write_text("NET = 'net'\n")
            (inner / "other.py").write_text("from . import net\n")
            for text in ("from .net import NET\nfrom ..inner import other\n", "from net import NET\n"):
                (inner / "train.py").write_text(text + "print(NET, __name__, __package__)\n")
                done = subprocess.run(
                    [sys.executable, "-c", "from lockstep._script import start_main; start_main()",
                     str(inner / "train.py")], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                    text=True, timeout=120, cwd="/",
                    env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))})
                package = "proj.inner" if "." in text else "None"
                self.assertIn(f"net __main__ {package}\n", done.stdout)


    def started(self, directory: str, *words: str, **variables: str) -> str:
        done = subprocess.run(
            [sys.executable, "-c", "from lockstep._script import start_main; start_main()", *words],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120, cwd="/",
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), **variables})
        return done.stdout.replace(directory, "DIR")

    def test_a_module_runs_as_python_m_runs_it(self) -> None:
        with tempfile.TemporaryDirectory() as directory:
            proj = pathlib.Path(directory) / "proj"
            (proj / "inner").mkdir(parents=True)
            (proj / "__init__.py").write_text("print('proj is imported')\n")
            (proj / "net.py").write_text("NET = 'net'\n")
            text = ("import sys\nfrom {dots}net import NET\nprint(NET, __name__, __package__, __file__, "
                    "__spec__.name, __spec__.origin, type(__loader__).__name__, sys.path[0], sys.argv)\n"
                    "assert sys.modules['__main__'].__dict__ is globals()\n")
            (proj / "inner" / "train.py").write_text(text.format(dots=".."))
            (proj / "__main__.py").write_text(text.format(dots="."))
            for module, path in (("proj.inner.train", "proj/inner/train.py"), ("proj", "proj/__main__.py")):
                plain = subprocess.run(
                    [sys.executable, "-m", module, "--lr", "1"], stdout=subprocess.PIPE, text=True,
                    cwd=directory, check=True, timeout=120).stdout.replace(directory, "DIR")
                ours = self.started(directory, "-m", module, f"{directory}/{path}", "--lr", "1")
                self.assertEqual(plain, "".join(ours.splitlines(True)[:2]))

    def test_the_code_of_a_module_is_all_of_its_package(self) -> None:
        with tempfile.TemporaryDirectory() as directory:
            for name in ("site-packages/proj/jobs/train.py", "site-packages/proj/common.py",
                         "site-packages/other.py", "site-packages/proj/jobs/__init__.py",
                         "site-packages/proj/__init__.py"):
                path = pathlib.Path(directory) / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.touch()
            train = pathlib.Path(directory) / "site-packages/proj/jobs/train.py"
            train.write_text("import other\nfrom .. import common\nfrom lockstep._code import CODE\n"
                             "print(CODE.hash(__file__))\n")
            def hashed() -> str:
                return self.started(directory, "-m", "proj.jobs.train", str(train),
                                    PYTHONPATH=os.pathsep.join([*filter(None, sys.path),
                                                                f"{directory}/site-packages"]))
            before = hashed()
            self.assertRegex(before, r"^[0-9a-f]{32}\n")
            (train.parents[2] / "other.py").write_text("# another library\n")
            self.assertEqual(before, hashed())
            (train.parents[1] / "common.py").write_text("# another level of the package\n")
            self.assertNotEqual(before, hashed())

    def test_the_code_of_a_script_that_imports_relatively_is_all_of_its_package(self) -> None:
        with tempfile.TemporaryDirectory() as directory:
            for name in ("proj/jobs/train.py", "proj/common.py", "proj/jobs/__init__.py",
                         "proj/__init__.py"):
                path = pathlib.Path(directory) / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.touch()
            train = pathlib.Path(directory) / "proj/jobs/train.py"
            train.write_text("from .. import common\nfrom lockstep._code import CODE\n"
                             "print(CODE.hash(__file__))\n")
            before = self.started(directory, str(train))
            self.assertRegex(before, r"^[0-9a-f]{32}\n")
            (train.parents[1] / "common.py").write_text("# edited\n")
            self.assertNotEqual(before, self.started(directory, str(train)))


if __name__ == "__main__":
    unittest.main()
