#!/usr/bin/env python3
"""Remakes the archives of this folder and expected.json with PyTorch 2.11, numpy and xxhash:

    python3 make.py FINGERPRINTS [DIRECTORY]        (this folder by default)

FINGERPRINTS has the table's fingerprint for each run, as JSON {"mse": ..., ...}; fields_test.cc
prints one that expected.json does not have. The table is the one of own_loss/make.py with three
more columns, extra() below: a price, a weight (0 in a quarter of the rows), and a label. Each model
takes ten steps of SGD, as there. A weight multiplies the loss of its sample and is no part of the
mean's denominator."""
import importlib.util
import json
import pathlib
import sys

import torch
from torch import nn
from torch.export import Dim, export
from torch.nn import functional

HERE = pathlib.Path(__file__).resolve().parent
_spec = importlib.util.spec_from_file_location("own_loss", HERE.parent / "own_loss" / "make.py")
own_loss = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(own_loss)
models, SAMPLES, LR = own_loss.models, own_loss.SAMPLES, own_loss.LR
UNKNOWN, SIDE = 255, 4
PIXELS_FINGERPRINT = "pixels"  # of data in memory


class TwoTargets(nn.Module):
    """A class and a number of each row. The inputs are found by their names."""

    def __init__(self):
        super().__init__()
        self.body = models.Body(4)

    def forward(self, price, rows, label):
        out = self.body(rows)
        error = (out[:, 3] - price) ** 2
        loss = functional.cross_entropy(out[:, :3], label, reduction="none") + error
        return {"loss": loss, "hit": (out[:, :3].argmax(1) == label).float(), "error": error}


class Pixels(nn.Module):
    """A class of each pixel. The mean is over the pixels whose class is known."""

    def __init__(self):
        super().__init__()
        self.out = nn.Conv2d(1, 3, 3, padding=1)

    def forward(self, image, mask):
        logits = self.out(image)
        wanted = mask.long()
        loss = functional.cross_entropy(logits, wanted, ignore_index=UNKNOWN, reduction="none")
        known = (wanted != UNKNOWN).float()
        right = (logits.argmax(1) == wanted).float().sum((1, 2))
        return {"loss": loss.sum((1, 2)), "weight": known.sum((1, 2)),
                "right": right / known.sum((1, 2)).clamp(min=1)}


class Logits(models.Body):
    def __init__(self):
        super().__init__(3)


MADE = {  # archive: model, its inputs
    "two_targets": (TwoTargets, ("price", "x", "label")),
    "logits": (Logits, ("x",)),
    "one_output": (models.OneOutput, ("x",)),
    "pixels": (Pixels, ("image", "mask")),
}
RUNS = {  # run: archive, train.loss, label smoothing, whether samples have weights
    "two_targets": ("two_targets", "", 0, True),
    "mse": ("one_output", "mse", 0, False),
    "weighted_huber": ("one_output", "huber", 0, True),
    "weighted_cross_entropy": ("logits", "", 0.1, True),
}


def extra():
    i = torch.arange(SAMPLES)
    return (i * 37 + 5) % 64 / 16 - 1, i % 4 * 0.5  # price, weight


def pixels():
    """Images and masks; a quarter of the pixels is unknown, and all of every seventh sample."""
    i = torch.arange(SAMPLES * SIDE * SIDE).view(SAMPLES, SIDE, SIDE)
    images = (i * 7919 + 13) % 256
    classes = (i * 5 + i // 16) % 4
    masks = torch.where((classes == 3) | (torch.arange(SAMPLES) % 7 == 0).view(-1, 1, 1), UNKNOWN,
                        classes)
    return images.to(torch.uint8), masks.to(torch.uint8)


def run_of_pixels():
    model = made("pixels")
    images, masks = pixels()
    images = images.float().unsqueeze(1) / 255
    optimizer = torch.optim.SGD(model.parameters(), lr=LR)
    out = {"losses": [], "metrics": []}

    def mean_of(chosen):
        given = model(images[chosen], masks[chosen])
        return given["loss"].sum() / given["weight"].sum(), {"right": given["right"].mean().item()}

    for step, chosen in enumerate(own_loss.batches(PIXELS_FINGERPRINT)):
        optimizer.zero_grad()
        value, metrics = mean_of(chosen)
        value.backward()
        if step == 0:
            out["gradient_norms"] = {name: p.grad.double().norm().item()
                                     for name, p in model.named_parameters()}
        optimizer.step()
        out["losses"].append(value.item())
        out["metrics"].append(metrics)
    with torch.no_grad():
        value, metrics = mean_of(list(range(SAMPLES)))
        out["eval"] = {"loss": value.item(), "metrics": metrics}
    return out


def program_of(model, inputs):
    price, _ = extra()
    x, label = own_loss.table(3)
    images, masks = pixels()
    examples = {"price": price[:4], "x": x[:4], "label": label[:4],
                "image": images[:4].float().unsqueeze(1), "mask": masks[:4]}
    dim = Dim("batch", min=1, max=64)
    return export(model, tuple(examples[name] for name in inputs),
                  dynamic_shapes=tuple({0: dim} for _ in inputs))


def made(name):
    torch.manual_seed(sum(name.encode()))
    return MADE[name][0]()


def losses_of(model, archive, loss, smoothing, x, labels, price):
    """The loss of each sample, the means of the metrics, and how many predictions are right."""
    if archive == "two_targets":
        out = model(price, x, labels)
        return out["loss"], {name: out[name].mean().item() for name in ("hit", "error")}, 0
    out = model(x)
    if archive == "one_output":
        return own_loss.ELEMENTS[loss](out, price.unsqueeze(1), reduction="none").mean(1), {}, 0
    right = (out.argmax(1) == labels).sum().item()
    return functional.cross_entropy(out, labels, reduction="none", label_smoothing=smoothing), {}, right


def run(archive, loss, smoothing, is_weighted, fingerprint):
    model = made(archive)
    x, labels = own_loss.table(3)
    price, weight = extra()
    if not is_weighted:
        weight = torch.ones(SAMPLES)
    optimizer = torch.optim.SGD(model.parameters(), lr=LR)
    out = {"archive": archive, "loss": loss, "smoothing": smoothing, "losses": [], "metrics": [],
           "correct": []}
    for step, chosen in enumerate(own_loss.batches(fingerprint)):
        optimizer.zero_grad()
        each, metrics, right = losses_of(model, archive, loss, smoothing, x[chosen],
                                         labels[chosen], price[chosen])
        value = (each * weight[chosen]).mean()
        value.backward()
        if step == 0:
            out["gradient_norms"] = {name: p.grad.double().norm().item()
                                     for name, p in model.named_parameters()}
        optimizer.step()
        out["losses"].append(value.item())
        out["metrics"].append(metrics)
        out["correct"].append(right)
    with torch.no_grad():
        each, metrics, right = losses_of(model, archive, loss, 0, x, labels, price)
        out["eval"] = {"loss": (each * weight).mean().item(), "metrics": metrics, "correct": right}
    return out


def main():
    fingerprints = json.loads(sys.argv[1])
    folder = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else HERE
    torch.set_num_threads(1)
    for name, (_, inputs) in MADE.items():
        own_loss.exported.write(folder / f"{name}.pt2",
                                own_loss.exported.contents(program_of(made(name), inputs)))
    expected = {"fingerprints": fingerprints,
                "runs": {name: run(*settings, fingerprints[name])
                         for name, settings in RUNS.items()},
                "pixels": run_of_pixels()}
    (folder / "expected.json").write_text(json.dumps(expected, indent=1) + "\n")


if __name__ == "__main__":
    main()
