#!/usr/bin/env python3
"""Remakes the archives of this folder and expected.json with PyTorch 2.11, numpy and xxhash:

    python3 make.py FINGERPRINTS [DIRECTORY]        (this folder by default)

FINGERPRINTS has the fingerprint of the arrays for each run, as JSON {"images": ..., "volumes": ...,
"ids": ...}; float_images_test.cc prints one that expected.json does not have. The arrays are
images() and volumes() below, rows of token ids with a mask are ids(), with the labels and prices of
fields/make.py. Each model takes ten steps of SGD."""
import importlib.util
import json
import pathlib
import sys

import torch
from torch import nn
from torch.export import Dim, export
from torch.nn import functional

HERE = pathlib.Path(__file__).resolve().parent
_spec = importlib.util.spec_from_file_location("fields", HERE.parent / "fields" / "make.py")
fields = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(fields)
own_loss, SAMPLES, LR = fields.own_loss, fields.SAMPLES, 0.1
TOKENS, TABLE = 7, 32


class Images(nn.Module):
    """A class and a number of images of two channels. The inputs are found by their names."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(2, 4, 3, padding=1)
        self.out = nn.Linear(4 * 4 * 5, 4)

    def forward(self, price, image, label):
        out = self.out(functional.relu(self.conv(image)).flatten(1))
        error = (out[:, 3] - price) ** 2
        return {"loss": functional.cross_entropy(out[:, :3], label, reduction="none") + error,
                "error": error}


class Volumes(nn.Module):
    """The logits of volumes."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv3d(1, 3, 2)
        self.out = nn.Linear(3 * 2 * 4 * 3, 3)

    def forward(self, scan):
        return self.out(torch.tanh(self.conv(scan)).flatten(1))


class Ids(nn.Module):
    """A class of rows of ids, of which a mask of its own says which count."""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(TABLE, 6)
        self.out = nn.Linear(6, 3)

    def forward(self, attention_mask, input_ids, label):
        mask = attention_mask.unsqueeze(2).float()
        mean = (self.table(input_ids) * mask).sum(1) / mask.sum(1)
        logits = self.out(mean)
        return {"loss": functional.cross_entropy(logits, label, reduction="none"),
                "hit": (logits.argmax(1) == label).float()}


def values(*sizes):
    """Multiples of 1/128 in -1 to 1, which float16 holds, too."""
    count = torch.Size(sizes).numel()
    i = torch.arange(SAMPLES * count).view(SAMPLES, *sizes)
    return ((i * 7919 + 13) % 256).float() / 128 - 1


def images():
    return values(2, 4, 5)


def volumes():
    return values(1, 3, 5, 4)


def ids():
    """Rows of token ids and their mask: 3 to 7 of 7 tokens count."""
    i = torch.arange(SAMPLES * TOKENS).view(SAMPLES, TOKENS)
    return (i * 7919 + 13) % TABLE, (i % TOKENS < 3 + i // TOKENS % 5).long()


MADE = {"images": Images, "volumes": Volumes, "ids": Ids}


def made(name):
    torch.manual_seed(sum(name.encode()))
    return MADE[name]()


def inputs_of(name, chosen):
    price, _ = fields.extra()
    _, label = own_loss.table(3)
    if name == "images":
        return price[chosen], images()[chosen], label[chosen]
    if name == "ids":
        tokens, mask = ids()
        return mask[chosen], tokens[chosen], label[chosen]
    return (volumes()[chosen],)


def program_of(name):
    example = inputs_of(name, list(range(4)))
    dim = Dim("batch", min=1, max=64)
    return export(made(name), example, dynamic_shapes=tuple({0: dim} for _ in example))


def look(model, name, chosen):
    """The mean loss, the means of the metrics, and how many predictions are right."""
    given = model(*inputs_of(name, chosen))
    if name != "volumes":
        metric = {"images": "error", "ids": "hit"}[name]
        return given["loss"].mean(), {metric: given[metric].mean().item()}, 0
    label = own_loss.table(3)[1][chosen]
    return functional.cross_entropy(given, label), {}, (given.argmax(1) == label).sum().item()


def run(name, fingerprint):
    model = made(name)
    optimizer = torch.optim.SGD(model.parameters(), lr=LR)
    out = {"losses": [], "metrics": [], "correct": []}
    for step, chosen in enumerate(own_loss.batches(fingerprint)):
        optimizer.zero_grad()
        value, metrics, right = look(model, name, chosen)
        value.backward()
        if step == 0:
            out["gradient_norms"] = {key: p.grad.double().norm().item()
                                     for key, p in model.named_parameters()}
        optimizer.step()
        out["losses"].append(value.item())
        out["metrics"].append(metrics)
        out["correct"].append(right)
    with torch.no_grad():
        value, metrics, right = look(model, name, list(range(SAMPLES)))
        out["eval"] = {"loss": value.item(), "metrics": metrics, "correct": right}
    return out


def main():
    fingerprints = json.loads(sys.argv[1])
    folder = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else HERE
    torch.set_num_threads(1)
    for name in MADE:
        own_loss.exported.write(folder / f"{name}.pt2",
                                own_loss.exported.contents(program_of(name)))
    expected = {"fingerprints": fingerprints,
                "runs": {name: run(name, fingerprints[name]) for name in MADE}}
    (folder / "expected.json").write_text(json.dumps(expected, indent=1) + "\n")


if __name__ == "__main__":
    main()
