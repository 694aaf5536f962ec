"""lockstep.export_program, with real processes: jobs of `model.name: exported` on what it wrote."""
import json
import os
import re
import subprocess
import unittest

from fails_with import lacking
from harness import BIN, DEADLINE_S, ROOT, synthetic_dataset
from script_runs import SCRIPTS, ScriptTest

PAGE = ROOT / "worker/MODELS.md"
DATA = {"size": 8, "classes": 10}
TRAIN = {"global_batch": 48, "slots": 4, "epochs": 2, "eval_batch": 50}


class ExportedPrograms(ScriptTest):
    def job_of(self, model, name="job.yaml", **train):
        data = self.scratch / "data"
        if not data.exists():
            synthetic_dataset(data, **DATA)
        return self.job(data, name, model=model, train={**TRAIN, **train},
                        optimizer={"name": "adamw", "lr": 0.002})

    def assert_trains_and_evaluates(self, job, name):
        one, two = (self.finish(job, "--workers", workers, name=f"{name}-{workers}")
                    for workers in (1, 2))
        self.assert_same_result(two, one)
        self.assertEqual(two.summary()["eval_loss"], one.summary()["eval_loss"])
        losses = [row["loss"] for row in one.history()]
        self.assertLess(min(losses[-3:]), losses[0])
        return one

    def test_models_of_many_kinds_have_the_same_bits_in_worlds_of_one_and_two(self):
        told = json.loads(self.alone(SCRIPTS / "exports.py", self.scratch).splitlines()[-1])
        for name, model in told.items():
            with self.subTest(name):
                job = self.job_of({"name": "exported", **model}, f"{name}.yaml")
                self.assert_trains_and_evaluates(job, name)

    def test_the_example_of_the_page_trains_and_goes_out_again(self):
        example = re.search(r"(?ms)^## Exported programs$.*?^```python\n(.*?)^```$", PAGE.read_text())[1]
        self.assertLessEqual(len(example.splitlines()), 10)
        keys = re.search(r"(?m)^model: (\{name: exported, path: m.pt2.*\})$", PAGE.read_text())[1]
        self.alone(self.write_script(example, "export.py"))
        model = dict(re.findall(r"(\w+): ([\w.]+)", keys))
        self.assertEqual(sorted(model), ["eval_path", "name", "path"])
        run = self.assert_trains_and_evaluates(self.job_of(model), "page")
        self.succeed("export", "model", run.run_dir, self.scratch / "out")
        opened = self.alone(self.write_script(
            "import sys, torch\n"
            "about = {'lockstep.json': ''}\n"
            "program = torch.export.load(sys.argv[1], extra_files=about).module()\n"
            "print(program(torch.randn(3, 1, 8, 8)).shape, about['lockstep.json'])\n", "open.py"),
            self.scratch / "out" / "model.pt2")
        self.assertRegex(opened, r'torch\.Size\(\[3, 10\]\) .*"classes": \["0", "1", ')

    def test_the_lines_of_the_page_train_and_export_a_unet(self):
        page = (ROOT / "data/FIELDS.md").read_text()
        lines = re.search(r"(?ms)\*\*Example: a U-Net\.\*\*.*?^```\n(.*?)^```$", page).group(1)
        self.assertLessEqual(len(lines.splitlines()), 10)
        small = lines.replace("unet_masks.py", "unet_masks.py --side 32 --width 4 --pictures 64")
        programs = self.scratch / "bin"
        programs.mkdir()
        (programs / "python3").symlink_to(self.python)
        (self.scratch / "deploy").symlink_to(ROOT / "deploy")
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", small], cwd=self.scratch, text=True,
            capture_output=True, timeout=DEADLINE_S, stdin=subprocess.DEVNULL,
            env={**self.environment(), "PATH": f"{programs}:{BIN}:{os.environ['PATH']}"})
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(lacking(done.stdout, names=["test dice", "loss"]), [], done.stdout)


if __name__ == "__main__":
    unittest.main()
