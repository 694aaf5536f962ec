"""A training loop that is a module of a package, for tests with real processes."""
import os
import re
import subprocess

from harness import DEADLINE_S
from script_runs import ScriptTest

TRAIN = """
# /// lockstep
# job: packaged
# train: {global_batch: 12, slots: 3, epochs: 2}
# checkpoint: {every_steps: 5}
# ///
import argparse, pathlib, sys, time
import lockstep, torch
from torch.nn import functional as F
from . import data
from ..common import make

def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--width", type=int, default=8)
    parser.add_argument("--pace")
    words = parser.parse_args()
    print("as", __name__, __package__, __spec__ and __spec__.name, sys.argv[0])
    run = lockstep.start()
    model = make(words.width)
    run.keep(model=model, optimizer=torch.optim.SGD(model.parameters(), 1e-2))
    for x, y in run.batches(data.table(), workers=1):
        if words.pace and not run.is_trial:
            time.sleep(int(pathlib.Path(words.pace).read_text()) / 1000)
        run.backward(F.cross_entropy(model(x), y))

if __name__ == "__main__":
    main()
"""
COMMON = """
from torch import nn
def make(width): return nn.Sequential(nn.Linear(8, width), nn.ReLU(), nn.Linear(width, 4))
"""
DATA = """
import torch
class Table(torch.utils.data.Dataset):
    def __init__(self):
        generator = torch.Generator().manual_seed(3)
        self.x = torch.randn(100, 8, generator=generator)
        self.y = torch.randint(4, (100,), generator=generator)
    def __len__(self): return 100
    def __getitem__(self, index): return self.x[index] + torch.randn(8) * 0.05, self.y[index]
def table(): return Table()
"""
MODULE = "proj.jobs.train"


class ModuleTest(ScriptTest):
    """Tests with a package in a folder."""
    known = {}  # weights that the package's own module has alone, by its words

    def setUp(self):
        super().setUp()
        self.folder = self.scratch / "src"
        self.write("proj/__init__.py", "")
        self.write("proj/common.py", COMMON)
        self.write("proj/jobs/__init__.py", "")
        self.write("proj/jobs/data.py", DATA)
        self.write("proj/jobs/train.py", TRAIN)
        self.take_ms(0)

    def write(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def start_module(self, *words, module=MODULE, workers=1, name="run", folder=None, **variables):
        return self.start("-m", module, "--workers", workers, *words, name=name,
                          env={**os.environ, **variables},
                          prefix=("env", "-C", str(folder or self.folder)))

    def output_of(self, *words, expect=0, **variables):
        """The output of `python WORDS` in the folder of the package."""
        done = subprocess.run([self.python, *map(str, words)], cwd=self.folder, text=True,
                              env={**self.environment(), **variables}, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=DEADLINE_S)
        self.assertEqual(done.returncode, expect, done.stdout[-3000:])
        return done.stdout

    def weights_alone_of(self, *words):
        if words not in self.known:
            self.known[words] = re.search(r"weights_sha256 (\w{64})", self.output_of("-m", *words))[1]
        return self.known[words]

    def assert_done(self, run, weights):
        self.assertEqual(run.wait(), 0, run.text()[-3000:] + self.log_of(run)[-3000:])
        self.assertEqual(run.summary()["weights_sha256"], weights)
        self.audit(run)
