#!/usr/bin/env python3
"""Makes mixing.json: PyTorch's own training on images mixed with others of their slot, and its loss of
rows of logits for labels that are mixed and smoothed.

Draws as Lockstep makes them (mixing_draws.py), initial weights and batches as in losses.py. Targets
are probabilities of all classes, as torchvision's MixUp and CutMix make them. Needs torch, numpy and
xxhash.

    python3 mixing.py [directory of the IDX files] > mixing.json
"""
import json
import sys

import torch
from torch.nn import functional

import losses
from mixing_draws import draw_mix
from order import stream_value

SEED, BATCH, STEPS, CLASSES = losses.SEED, losses.BATCH, 12, 10
RUNS = [  # model, optimizer, Beta's parameter of mixup and cutmix, slots
    ("mlp", "adamw", 0.4, 0, 1),
    ("mlp", "adamw", 0.4, 0, 4),
    ("cnn", "sgd", 0, 1, 4),
    ("cnn", "adamw", 0.2, 0.5, 4),
]
ROWS = [  # label, other label, share of the first, smoothing
    (3, 3, 1, 0), (3, 7, 0.75, 0), (0, 9, 0.25, 0), (4, 4, 0.5, 0), (9, 9, 1, 0.1), (2, 5, 0.625, 0.1),
    (6, 1, 0, 0.3),
]


def mix_slot(images, labels, mixup, cutmix, position):
    """The mixed images of one slot, and the probabilities of their classes."""
    height, width = images.shape[-2:]
    share, box = draw_mix(mixup, cutmix, SEED, 0, position, height, width)
    if box is None:
        images = images.roll(1, 0).mul(1 - share).add(images.mul(share))
    else:
        top, bottom, left, right = box
        rolled, images = images.roll(1, 0), images.clone()
        images[..., top:bottom, left:right] = rolled[..., top:bottom, left:right]
    wanted = functional.one_hot(labels, CLASSES).float()
    return images, wanted.roll(1, 0).mul(1 - share).add(wanted.mul(share))


def mixed(data, mixup, cutmix, slots):
    for step, (x, y) in enumerate(data):
        bounds = [BATCH * slot // slots for slot in range(slots + 1)]
        parts = [mix_slot(x[a:b], y[a:b], mixup, cutmix, step * BATCH + a)
                 for a, b in zip(bounds, bounds[1:])]
        yield tuple(torch.cat(part) for part in zip(*parts))


def row(label, other, share, smoothing, index):
    logits = torch.tensor([stream_value(index, i) % 4096 / 512 - 4 for i in range(CLASSES)],
                          dtype=torch.float32, requires_grad=True)
    target = torch.tensor(label)
    if share < 1:
        target = torch.zeros(CLASSES)
        target[label] += share
        target[other] += 1 - share
    loss = functional.cross_entropy(logits[None], target[None], label_smoothing=smoothing)
    loss.backward()
    return {"label": label, "other": other, "share": share, "smoothing": smoothing,
            "logits": logits.tolist(), "loss": loss.item(), "gradient": logits.grad.tolist()}


def main():
    torch.set_num_threads(1)
    directory = sys.argv[1] if len(sys.argv) > 1 else "/usr/share/datasets/fashion-mnist"
    data = list(losses.batches(directory, BATCH, STEPS))
    runs = []
    for model, optimizer, mixup, cutmix, slots in RUNS:
        trained = losses.train(getattr(losses, model)(False), optimizer,
                               mixed(data, mixup, cutmix, slots))
        runs.append({"model": model, "optimizer": optimizer, "mixup": mixup, "cutmix": cutmix,
                     "slots": slots, "losses": trained})
    rows = [row(*what, index) for index, what in enumerate(ROWS)]
    json.dump({"torch": torch.__version__, "runs": runs, "rows": rows}, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
