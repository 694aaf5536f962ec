#!/usr/bin/env python3
"""Makes losses.json: the first 20 losses of PyTorch's own training, step by step.

Same initial weights and same batches as Lockstep (order.py), on Fashion-MNIST, in fp32 on one
thread, with torch.nn modules and torch.optim optimizers. Needs torch, numpy and xxhash.

    python3 losses.py [directory of the IDX files] > losses.json

avx2/losses.json is of a processor without AVX-512, whose kernels add in another order: a network
with BatchNorm carries the difference on (1e-4 after 20 steps, 7e-4 in resnet18).
"""
import json
import sys

import numpy as np
import torch
import xxhash
from torch import nn

from image_models import cnn, mlp, resnet
from order import MASK, EpochOrder, initial_weights, normal_weights, read_idx

SEED, BATCH, STEPS = 1, 64, 20
FINGERPRINT = "898b6971d720c74ef95b7bb7b2efe08a"  # of Fashion-MNIST's training data
OPTIMIZERS = {
    "adamw": lambda p: torch.optim.AdamW(p, lr=1e-3, weight_decay=0.01),
    "sgd": lambda p: torch.optim.SGD(p, lr=0.01, momentum=0.9, weight_decay=1e-4),
}


# Name: model, samples a step, steps. With SGD: see losses_test.cc. Few steps: rounding grows fast in
# a deep network that begins from nothing (resnet.py).
RESIDUAL = {
    "resnet18": (lambda: resnet([2, 2, 2, 2], 1, False), 16, 3),
    "resnet18_imagenet": (lambda: resnet([2, 2, 2, 2], 1, True), 16, 3),
    "resnet50": (lambda: resnet([3, 4, 6, 3], 4, True), 16, 1),
}


def initialise(model, seed=SEED):
    index = 0
    for module in model.modules():
        if isinstance(module, nn.Conv2d) and module.bias is None:
            fan_out = module.weight[:, 0].numel()
            module.weight.data = torch.from_numpy(
                normal_weights(module.weight.shape, (2 / fan_out) ** 0.5, seed, index))
            index += 1
        elif isinstance(module, (nn.Linear, nn.Conv2d)):
            fan_in = module.weight[0].numel()
            for p in (module.weight, module.bias):
                p.data = torch.from_numpy(initial_weights(p.shape, fan_in, seed, index))
                index += 1
        elif isinstance(module, (nn.BatchNorm1d, nn.BatchNorm2d)):
            index += 2  # ones and zeros, as PyTorch makes them


def batches(directory, batch=BATCH, steps=STEPS):
    pixels = read_idx(directory, "train-images-idx3-ubyte")
    labels = read_idx(directory, "train-labels-idx1-ubyte")
    mean, std = np.float32(pixels.mean() / 255), np.float32(pixels.std() / 255)
    digest = xxhash.xxh3_128_intdigest(FINGERPRINT.encode())
    order = EpochOrder(SEED, 0, (digest & MASK, digest >> 64), len(labels))
    for step in range(steps):
        chosen = [order.at(step * batch + i) for i in range(batch)]
        x = (pixels[chosen].astype(np.float32) / np.float32(255) - mean) / std
        yield torch.from_numpy(x[:, None]), torch.from_numpy(labels[chosen].astype(np.int64))


def train(model, optimizer, data):
    initialise(model)
    optimizer = OPTIMIZERS[optimizer](model.parameters())
    losses = []
    for x, y in data:
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def main():
    torch.set_num_threads(1)
    directory = sys.argv[1] if len(sys.argv) > 1 else "/usr/share/datasets/fashion-mnist"
    data = list(batches(directory))
    runs = {}
    for make in (mlp, cnn):
        for norm in (False, True):
            for optimizer in OPTIMIZERS:
                name = f"{make.__name__}{'_batch_norm' if norm else ''}_{optimizer}"
                runs[name] = train(make(norm), optimizer, data)
    residual = {}
    for name, (make, batch, steps) in RESIDUAL.items():
        losses = train(make(), "sgd", batches(directory, batch, steps))
        residual[name] = {"batch": batch, "losses": losses}
    header = {"torch": torch.__version__, "seed": SEED, "batch": BATCH, "fingerprint": FINGERPRINT}
    json.dump({**header, "losses": runs, "residual": residual}, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
