#!/usr/bin/env python3
r"""Exported programs of well-known models beside eager PyTorch: the first 20 losses, the logits of
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
from torch import nn
from torch.export import Dim, export, save
from torch.nn import functional as F

LIMIT = 1e-5
CLASSES, VOCABULARY = 10, 128


class Mlp(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Flatten(), nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 128),
                         nn.ReLU(), nn.Linear(128, CLASSES))


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        block = lambda i, o: nn.Sequential(nn.Conv2d(i, o, 3, padding=1), nn.ReLU(),
                                           nn.Conv2d(o, o, 3, padding=1), nn.ReLU())
        self.a, self.b, self.c = block(3, 16), block(16, 32), block(32, 64)
        self.up2, self.up1 = nn.ConvTranspose2d(64, 32, 2, 2), nn.ConvTranspose2d(32, 16, 2, 2)
        self.d, self.e, self.out = block(64, 32), block(32, 16), nn.Conv2d(16, CLASSES, 1)

    def forward(self, x):
        a = self.a(x)
        b = self.b(F.max_pool2d(a, 2))
        y = self.d(torch.cat([b, self.up2(self.c(F.max_pool2d(b, 2)))], 1))
        return self.out(self.e(torch.cat([a, self.up1(y)], 1))).mean((2, 3))


class Logits(nn.Module):
    """A model of transformers that gives its logits alone."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids):
        return self.model(input_ids=input_ids).logits


def vision(name, **options):
    import torchvision
    return getattr(torchvision.models, name)(num_classes=CLASSES, **options)


def gpt2():
    from transformers import GPT2Config, GPT2LMHeadModel
    return Logits(GPT2LMHeadModel(GPT2Config(vocab_size=VOCABULARY, n_positions=64, n_embd=32,
                                             n_layer=2, n_head=2, use_cache=False)))


def bert():
    from transformers import BertConfig, BertForMaskedLM
    return Logits(BertForMaskedLM(BertConfig(vocab_size=VOCABULARY, hidden_size=32,
                                             intermediate_size=64, num_hidden_layers=2,
                                             num_attention_heads=2, max_position_embeddings=64)))


# What makes it, the shape of a sample, samples, learning rate, whether evaluation is a program of
# its own.
MODELS = {
    "mlp": (Mlp, (1, 28, 28), 64, 0.05, False),
    "unet": (UNet, (3, 32, 32), 4, 0.05, False),
    "resnet18": (lambda: vision("resnet18"), (3, 64, 64), 8, 0.01, False),
    "resnet50": (lambda: vision("resnet50"), (3, 64, 64), 4, 0.001, False),
    "vit_b_16": (lambda: vision("vit_b_16", image_size=32), (3, 32, 32), 2, 0.001, False),
    "mobilenet_v3_small": (lambda: vision("mobilenet_v3_small"), (3, 64, 64), 8, 0.01, False),
    "convnext_tiny": (lambda: vision("convnext_tiny"), (3, 64, 64), 2, 0.001, True),
    "gpt2": (gpt2, (32,), 4, 0.05, False),
    "bert": (bert, (32,), 4, 0.05, False),
}


def batch_of(shape, samples):
    torch.manual_seed(7)
    if len(shape) == 1:
        x = torch.randint(0, VOCABULARY, (samples, *shape))
        return x, (x + 3) % VOCABULARY
    return torch.randn(samples, *shape), torch.arange(samples) % CLASSES


def loss_of(model, x, labels):
    return F.cross_entropy(model(x).flatten(0, -2), labels.flatten())


def save_program(model, x, path):
    program = export(model, (x.clone(),), dynamic_shapes=({0: Dim("batch", min=1, max=1024)},))
    save(program, path)


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
        make, self.shape, self.samples, self.lr, has_eval = MODELS[name]
        self.name, self.folder, self.options = name, folder, options
        torch.manual_seed(1)
        self.model = make().train()
        self.x, self.labels = batch_of(self.shape, self.samples)
        self.command = [options.bench, folder / "train.pt2"]
        save_program(self.model, self.x, folder / "train.pt2")
        if has_eval:
            save_program(self.model.eval(), self.x, folder / "eval.pt2")
            self.model.train()
            self.command += ["--eval", folder / "eval.pt2"]
        self.x.numpy().tofile(folder / "x")
        self.labels.numpy().tofile(folder / "labels")
        is_text = len(self.shape) == 1
        self.command += ["--inputs", folder / "x", "--labels", folder / "labels",
                         "--shape", ",".join(map(str, self.shape)), "--lr", self.lr,
                         "--classes", VOCABULARY if is_text else CLASSES]
        self.command += ["--tokens"] if is_text else []

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
