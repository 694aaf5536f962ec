"""The suite of a bundle for a machine with a GPU (deploy/bundle.sh) runs from the first line to the
table where only Python and torch's wheel are installed. LOCKSTEP_BUNDLE and LOCKSTEP_TORCH_WHEEL
replace this clone's bundle and site-packages."""
import filecmp
import json
import os
import pathlib
import unittest

from clean_root import WHY_NOT, inside, make_root
from harness import ROOT, installed, scratch_directory

BUNDLE = pathlib.Path(os.environ.get("LOCKSTEP_BUNDLE", ROOT / "build/bundle"))
# Python's own dependencies, and the C++ library, which torch's wheel expects of every machine.
PACKAGES = ["python3", "libstdc++6"]
ENV = {"PATH": "/usr/bin:/bin", "HOME": "/tmp", "PYTHONDONTWRITEBYTECODE": "1"}


def wheel():
    return pathlib.Path(os.environ.get("LOCKSTEP_TORCH_WHEEL")
                        or pathlib.Path(installed("torch-root")).parent)


def why_not():
    if WHY_NOT:
        return f"no root can be made here: {WHY_NOT}"
    if not (BUNDLE / ".lockstep-bundle").exists():
        return f"there is no bundle in {BUNDLE}; deploy/bundle.sh makes one, with a CUDA toolkit"
    for folder in ("tests/gpu", "tests/harness"):
        scripts = [path.name for path in (BUNDLE / folder).glob("*.py")]
        if any(filecmp.cmpfiles(ROOT / folder, BUNDLE / folder, scripts, shallow=False)[1:]):
            return f"{BUNDLE} is of another state of {folder}; deploy/bundle.sh makes it again"
    if not (wheel() / "torch/lib/libtorch_cuda.so").exists():
        return f"{wheel()} has no torch for CUDA"
    return ""


class Bundle(unittest.TestCase):
    def setUp(self):
        if reason := why_not():
            self.skipTest(reason)
        scratch = scratch_directory(self.addCleanup)
        self.results = scratch / "results"
        self.results.mkdir()
        self.root = make_root(scratch, PACKAGES)
        # Every image has this file: torch asks for the user's name.
        (self.root / "etc/passwd").write_text("root:x:0:0:root:/root:/bin/sh\n")
        python = next((self.root / "usr/lib").glob("python3.*")).name
        self.mounts = [(BUNDLE, "srv/lockstep"), (self.results, "results"),
                       (wheel(), f"usr/local/lib/{python}/dist-packages")]

    def inside(self, *command):
        # `alone`, because the suite's tests look for sockets that their runs have left.
        return inside(self.root, command, ENV, mounts=self.mounts, timeout=800, alone=True)

    def test_its_suite_runs_from_the_first_line_to_the_table(self):
        out = self.inside("/srv/lockstep/tests/gpu/run.sh", "--device", "cpu", "--out", "/results",
                          "--rounds", "1", "--match", "test_gpu|any number|gpt2")
        logs = "\n".join(f"{log.name}: ...{log.read_text(errors='replace')[-2000:]}"
                         for log in sorted(self.results.glob("processes*.log")))
        self.assertEqual(out.returncode, 0, out.stdout[-4000:] + out.stderr[-3000:] + logs)
        table = (self.results / "gpu.md").read_text()
        self.assertIn("- state: complete", table)
        lines = (self.results / "gpu.jsonl").read_text().splitlines()
        records = [json.loads(line) for line in lines]
        checks = {record["check"]["name"]: record["check"] for record in records
                  if "check" in record}
        # Programs that cannot load their libraries would fail instead.
        self.assertEqual({name: checks[name]["result"] for name in ("test_gpu", "test_gpu_abort")},
                         {"test_gpu": "skipped", "test_gpu_abort": "skipped"})
        several = "processes: any number of workers gives the same weights"
        self.assertEqual(checks[several]["result"], "ok", checks[several])
        sides = {answer["side"]: answer for answer in (record["answer"] for record in records
                                                       if "answer" in record)
                 if answer["work"].startswith("gpt2")}
        for side in ("ours", "ours, fast numerics", "bare LibTorch loop"):
            self.assertIn("samples_per_second", sides[side], sides[side])
        # A wheel that is only for building may lack the packages that torch imports.
        can_import = self.inside("/usr/bin/python3", "-c", "import torch").returncode == 0
        self.assertEqual("samples_per_second" in sides["PyTorch eager"], can_import,
                         sides["PyTorch eager"])


if __name__ == "__main__":
    unittest.main()
