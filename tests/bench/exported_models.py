#!/usr/bin/env python3
r"""Exported programs of well-known models against eager PyTorch: the first 20 losses, the logits of
the trained model in evaluation, and the time of a forward and backward on one thread.

    $(deploy/install_deps.sh --print-models-python) tests/bench/exported_models.py \
      --bench build/release/bin/bench_exported [--only NAME...] [--rounds 5]

That Python has torch, torchvision and transformers (deploy/install_deps.sh --for tests). The models
begin from torch.manual_seed(1); both sides take the same batch in each step, SGD with the same
learning rate, and draw from a generator seeded with 100 + step. Rounds take turns, and each side's
best counts. Ends with 1 if a loss or a logit is further away than 1e-5.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import time
import warnings

import torch
from torch.nn import functional as F

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "harness"))
from reference_models import MODELS, make_model, save_program  # noqa: E402

LIMIT = 1e-5


def batch_of(model):
    torch.manual_seed(7)
    if model.is_text():
        x = torch.randint(0, model.outputs, (model.batch, *model.shape))
        return x, (x + 3) % model.outputs
    return torch.randn(model.batch, *model.shape), torch.arange(model.batch) % model.outputs


def loss_of(model, x, labels):
    return F.cross_entropy(model(x).flatten(0, -2), labels.flatten())


def train(model, x, labels, steps, lr):
    losses = []
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    for step in range(steps):
        torch.manual_seed(100 + step)
        optimizer.zero_grad()
        loss = loss_of(model, x, labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def best_ms(model, x, labels, repeat):
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        for p in model.parameters():
            p.grad = None
        torch.manual_seed(100)
        loss = loss_of(model, x, labels)
        loss.backward()
        loss.item()
        times.append((time.perf_counter() - start) * 1000)
    return min(times)


class Case:
    def __init__(self, name, folder, options):
        of = MODELS[name]
        self.shape, self.samples, self.lr = of.shape, of.batch, of.lr
        self.name, self.folder, self.options = name, folder, options
        self.model = make_model(name)
        self.x, self.labels = batch_of(of)
        self.command = [options.bench, folder / "train.pt2"]
        save_program(self.model, of.shape, folder / "train.pt2")
        if of.has_eval:
            save_program(self.model.eval(), of.shape, folder / "eval.pt2")
            self.model.train()
            self.command += ["--eval", folder / "eval.pt2"]
        self.x.numpy().tofile(folder / "x")
        self.labels.numpy().tofile(folder / "labels")
        self.command += ["--inputs", folder / "x", "--labels", folder / "labels",
                         "--shape", ",".join(map(str, self.shape)), "--lr", self.lr,
                         "--classes", of.outputs]
        self.command += ["--tokens"] if of.is_text() else []

    def ours(self, *more):
        done = subprocess.run([str(word) for word in (*self.command, *more)], capture_output=True,
                              text=True)
        if done.returncode != 0:
            sys.exit(f"{self.name}: {done.stderr.strip()}")
        return json.loads(done.stdout)

    def compare(self):
        """The largest relative distance of a loss, and of a logit to the largest of its size."""
        steps = self.options.steps
        logits = self.folder / "logits"
        ours = self.ours("--steps", steps, "--logits", logits)["losses"]
        theirs = train(self.model, self.x, self.labels, steps, self.lr)
        self.model.eval()
        with torch.no_grad():
            wanted = self.model(self.x)
        self.model.train()
        got = torch.from_file(str(logits), size=wanted.numel()).view_as(wanted)
        return (max(abs(a - b) / abs(b) for a, b in zip(ours, theirs)),
                ((got - wanted).abs().max() / wanted.abs().max()).item(),
                sum(a == b for a, b in zip(ours, theirs)))

    def race(self):
        ours, theirs = [], []
        for _ in range(self.options.rounds):
            ours.append(min(self.ours("--repeat", self.options.repeat)["ms"]))
            theirs.append(best_ms(self.model, self.x, self.labels, self.options.repeat))
        return min(ours), min(theirs)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bench", type=pathlib.Path, required=True)
    parser.add_argument("--only", nargs="*", choices=MODELS, default=list(MODELS))
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=0, help="of the race; 0: none")
    parser.add_argument("--repeat", type=int, default=20, help="forwards and backwards a round")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    print("| model (batch) | losses of equal bits | losses differ by | logits differ by "
          "| PyTorch ms | Lockstep ms | ratio |\n|---|---|---|---|---|---|---|", flush=True)
    is_good = True
    for name in options.only:
        with tempfile.TemporaryDirectory() as folder:
            case = Case(name, pathlib.Path(folder), options)
            losses, logits, equal = case.compare()
            row = f"| {name} ({case.samples}) | {equal} of {options.steps} | {losses:.1e} |"
            row += f" {logits:.1e} |"
            if options.rounds > 0:
                ours, theirs = case.race()
                row += f" {theirs:.3f} | {ours:.3f} | {ours / theirs:.3f} |"
            print(row, flush=True)
            is_good &= losses <= LIMIT and logits <= LIMIT
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
