"""Scripts that are modules of a package: `lockstep run -m proj.jobs.train` trains what `python -m
proj.jobs.train` does, with imports within the package, in every world and through every tool."""
import json
import subprocess
import unittest

from harness import BIN, DEADLINE_S
from packages import COMMON, MODULE, TRAIN, ModuleTest

CLICK = """
import click
from .train import main as train
@click.command()
@click.option("--width", default=8)
def main(width):
    import sys
    sys.argv = ["train", "--width", str(width)]
    train()
main()
"""


class Modules(ModuleTest):
    def test_three_workers_train_as_python_does_and_the_two_that_a_kill_leaves_too(self):
        weights = self.weights_alone_of(MODULE, "--width", 6)
        self.take_ms(200)
        run = self.start_module(f"script.args=[--width, 6, --pace, {self.pace}]", workers=3)
        run.wait_for_step(4)
        self.kill_and_go_on(run, 1)
        self.take_ms(0)
        self.assert_done(run, weights)
        self.assertIn(f"as __main__ proj.jobs {MODULE} {self.folder}/proj/jobs/train.py",
                      self.log_of(run))
        self.assertIn(f"module {MODULE}", run.text())

    def test_it_is_stopped_resumed_elsewhere_and_computed_again(self):
        weights = self.weights_alone_of(MODULE)
        self.take_ms(200)
        run = self.start_module(f"script.args=[--pace, {self.pace}]", workers=2)
        run.wait_for_step(7)
        self.stop(run)
        self.take_ms(0)
        rest = self.start("--resume", "--workers", 1, prefix=("env", "-C", "/"))
        self.assert_done(rest, weights)
        self.assertIn("bit for bit", self.replayed(run, 18))

    def test_ranks_of_a_launcher_train_it(self):
        """The rank that prepares the run finds the module under mpirun, srun and in pods."""
        run_dir = self.scratch / "run"
        ranks = [subprocess.Popen(
            [BIN / "lockstep", "agent", "-m", MODULE, "--run-dir", run_dir], cwd=self.folder, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            env={**self.environment(), "LOCKSTEP_RANK": str(rank), "LOCKSTEP_WORLD_SIZE": "2",
                 "LOCKSTEP_LAUNCH_ID": "modules"}) for rank in (0, 1)]
        said = [rank.communicate(timeout=DEADLINE_S)[0] for rank in ranks]
        self.assertEqual([rank.returncode for rank in ranks], [0, 0], said)
        summary = json.loads((run_dir / "summary.json").read_text())
        self.assertEqual(summary["weights_sha256"], self.weights_alone_of(MODULE))

    def test_an_installed_package_is_found_from_everywhere(self):
        weights = self.weights_alone_of(MODULE)
        run = self.start_module(folder="/", MORE_MODULES=str(self.folder))
        self.assert_done(run, weights)

    def test_of_a_package_its_main_module_is_run(self):
        self.write("proj/__main__.py", "# /// lockstep\n# train: {global_batch: 12, slots: 3, "
                   "epochs: 2}\n# ///\nfrom .jobs.train import main\nmain()\n")
        self.assert_done(self.start_module(module="proj"), self.weights_alone_of("proj"))

    def test_a_module_edited_anywhere_in_the_package_is_other_code(self):
        self.take_ms(200)
        run = self.start_module(f"script.args=[--pace, {self.pace}]")
        run.wait_for_step(2)
        self.write("proj/common.py", COMMON + "# edited\n")
        self.take_ages()
        self.succeed("scale", run.run_dir, 2)
        run.wait_for(lambda: "runs other code than this run" in run.text(), "the second one was refused")
        self.take_ms(0)
        self.assertEqual(run.wait(), 0, run.text()[-3000:])

    def test_a_package_that_fails_as_it_is_imported_ends_the_run_with_its_traceback(self):
        self.write("proj/jobs/__init__.py", "raise ArithmeticError('as the package was imported')\n")
        run = self.start_module()
        self.assertEqual(run.wait(), 64, run.text()[-3000:])
        log = self.log_of(run)
        self.assertIn("ArithmeticError: as the package was imported", run.text())
        self.assertNotIn("_script.py", log)
        self.assertNotIn("importlib", log)

    def test_a_package_of_the_same_name_in_front_of_it_is_named(self):
        """An import hook, such as editable installations have, finds another package first."""
        other = self.write("other/proj/jobs/train.py", TRAIN)
        self.write("hook/sitecustomize.py", f"""
import importlib.machinery, os, sys
class First:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == "proj" and "LOCKSTEP_WORKER" in os.environ:
            return importlib.machinery.PathFinder.find_spec(name, ["{other.parents[2]}"])
sys.meta_path.insert(0, First)
""")
        run = self.start_module(MORE_MODULES=str(self.folder / "hook"))
        self.assertEqual(run.wait(), 78, run.text()[-3000:])
        for words in (MODULE, str(other), str(self.folder / "proj/jobs/train.py")):
            self.assertIn(words, run.text())

    def test_click_reads_the_words(self):
        self.write("proj/jobs/app.py", TRAIN[:TRAIN.index("import")] + CLICK)
        run = self.start_module("script.args=[--width, 6]", module="proj.jobs.app", workers=2)
        self.assert_done(run, self.weights_alone_of(MODULE, "--width", 6))


if __name__ == "__main__":
    unittest.main()
