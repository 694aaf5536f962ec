#!/usr/bin/env python3
"""Makes torchscript_images.pt, torchscript_tokens.pt and torchscript.json.

A user would save such modules. Between them they have all that a module can hold: batch norm with
its counter, a statistic that forward replaces, constant and integer buffers, dropout, a frozen
parameter, a tied weight. The numbers come from PyTorch's own training of the first file as saved,
with its generator seeded before each step as Lockstep does it for a slot: the losses, and the
buffers after the last step. Data, batches and optimizer are the same as in losses.py.

    python3 torchscript.py [directory of the IDX files]
"""
import io
import json
import pathlib
import sys
import zipfile

import torch
from torch import nn

from losses import BATCH, FINGERPRINT, OPTIMIZERS, SEED, STEPS, batches
from order import stream_key

HERE = pathlib.Path(__file__).parent
DROPOUT = 2  # StreamKind


class Images(nn.Module):
    """Classifies images of any size from 12x12 on, with one channel, into 10 classes."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 8, 3)
        self.norm = nn.BatchNorm2d(8)
        self.hidden = nn.Linear(128, 32)
        self.out = nn.Linear(32, 10)
        self.gain = nn.Parameter(torch.full((8, 1, 1), 1.5), requires_grad=False)
        self.register_buffer("shift", torch.tensor([0.1]))
        self.register_buffer("level", torch.zeros(2, 4))

    def forward(self, x):
        h = torch.relu(self.norm(self.conv(x + self.shift))) * self.gain
        h = nn.functional.adaptive_avg_pool2d(nn.functional.max_pool2d(h, 2), [4, 4])
        if self.training:
            self.level = 0.9 * self.level + 0.1 * h.mean([0, 2, 3]).reshape(2, 4)
        h = torch.relu(self.hidden(h.flatten(1)))
        return self.out(nn.functional.dropout(h, 0.25, self.training))


class Tokens(nn.Module):
    """Predicts from one of 256 tokens and its place; a sequence has at most 32 tokens."""

    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(256, 16)
        self.places = nn.Embedding(32, 16)
        self.hidden = nn.Linear(16, 16)
        self.out = nn.Linear(16, 256, bias=False)
        self.out.weight = self.tokens.weight
        self.register_buffer("place", torch.arange(32))

    def forward(self, x):
        h = self.tokens(x) + self.places(self.place[: x.size(1)])
        return self.out(h + torch.tanh(self.hidden(h)))


def fold32(key):
    return (key ^ key >> 32) & 0xFFFFFFFF


def train(path, directory):
    model = torch.jit.load(path)
    model.train()
    optimizer = OPTIMIZERS["sgd"]([p for p in model.parameters() if p.requires_grad])
    losses = []
    with torch.jit.optimized_execution(False):
        for step, (x, y) in enumerate(batches(directory)):
            torch.manual_seed(fold32(stream_key(DROPOUT, SEED, step, 0)))
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    buffers = {name: b.flatten().tolist() for name, b in model.named_buffers()}
    return {"losses": losses, "buffers": buffers}


def save(model, path):
    """Saves the module without the files that map code to its source lines."""
    packed = io.BytesIO()
    torch.jit.save(torch.jit.script(model), packed)
    with zipfile.ZipFile(packed) as whole, zipfile.ZipFile(path, "w") as out:
        for entry in whole.infolist():
            if not entry.filename.endswith(".debug_pkl"):
                out.writestr(entry, whole.read(entry))


def main():
    torch.set_num_threads(1)
    torch.manual_seed(SEED)
    directory = sys.argv[1] if len(sys.argv) > 1 else "/usr/share/datasets/fashion-mnist"
    for model in (Images(), Tokens()):
        name = type(model).__name__.lower()
        save(model, HERE / f"torchscript_{name}.pt")
    header = {"torch": torch.__version__, "seed": SEED, "batch": BATCH, "fingerprint": FINGERPRINT}
    run = train(HERE / "torchscript_images.pt", directory)
    assert len(run["losses"]) == STEPS
    (HERE / "torchscript.json").write_text(json.dumps({**header, **run}, indent=1) + "\n")


if __name__ == "__main__":
    main()
