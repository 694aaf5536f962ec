#!/usr/bin/env python3
"""Logits and gradients of residual networks as PyTorch gives them, in double precision: in float a
fresh network of this depth says little, since rounding grows a hundred-thousandfold on its way back
(the gradients of PyTorch's own two memory formats differ in the second digit).

    resnet.py > resnet.json    (needs torch and numpy)

Each parameter's gradient is given as its norm and its product with a pattern that tells the places
apart.
"""
import json
import sys

import numpy as np
import torch
from torch import nn

from losses import SEED, initialise, resnet
from order import normal_weights

SAMPLES, SIDE, CLASSES, INPUT = 4, 28, 10, 1000  # INPUT: the random stream of the images
MODELS = {
    "resnet18": ([2, 2, 2, 2], 1, "cifar"),
    "resnet50": ([3, 4, 6, 3], 4, "cifar"),
    "resnet50_imagenet": ([3, 4, 6, 3], 4, "imagenet"),
}


def pattern(n):
    return torch.from_numpy((np.arange(n) * 7919 % 101 - 50).astype(np.float64))


def answers(blocks, expansion, stem):
    model = resnet(blocks, expansion, stem == "imagenet")
    initialise(model)
    model = model.double()
    x = torch.from_numpy(normal_weights((SAMPLES, 1, SIDE, SIDE), 1, SEED, INPUT)).double()
    logits = model(x)
    nn.functional.cross_entropy(logits, torch.arange(SAMPLES)).backward()
    gradients = [p.grad.flatten() for p in model.parameters()]
    return {"stem": stem, "logits": logits.flatten().tolist(),
            "norms": [g.norm().item() for g in gradients],
            "products": [(g @ pattern(len(g))).item() for g in gradients]}


def main():
    torch.set_num_threads(1)
    header = {"torch": torch.__version__, "seed": SEED, "samples": SAMPLES, "side": SIDE,
              "classes": CLASSES, "input": INPUT}
    models = {name: answers(*model) for name, model in MODELS.items()}
    json.dump({**header, "models": models}, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
