#!/usr/bin/env python3
"""Makes losses.json: the first 20 losses of PyTorch's own training, step by step.

Same initial weights and same batches as Lockstep (order.py), on Fashion-MNIST, in fp32 on one
thread, with torch.nn modules and torch.optim optimizers. Needs torch, numpy and xxhash.

    python3 losses.py [directory of the IDX files] > losses.json
"""
import json
import sys

import numpy as np
import torch
import xxhash
from torch import nn

from order import MASK, EpochOrder, initial_weights, read_idx

SEED, BATCH, STEPS = 1, 64, 20
FINGERPRINT = "898b6971d720c74ef95b7bb7b2efe08a"  # of Fashion-MNIST's training data
OPTIMIZERS = {
    "adamw": lambda p: torch.optim.AdamW(p, lr=1e-3, weight_decay=0.01),
    "sgd": lambda p: torch.optim.SGD(p, lr=0.01, momentum=0.9, weight_decay=1e-4),
}


def mlp(norm):
    def hidden(n, width):
        return [nn.Linear(n, width)] + ([nn.BatchNorm1d(width)] if norm else []) + [nn.ReLU()]

    return nn.Sequential(nn.Flatten(), *hidden(784, 256), *hidden(256, 128), nn.Linear(128, 10))


def cnn(norm):
    def block(n, width):
        conv = [nn.Conv2d(n, width, 3)] + ([nn.BatchNorm2d(width)] if norm else [])
        return conv + [nn.ReLU(), nn.MaxPool2d(2)]

    return nn.Sequential(
        *block(1, 16), *block(16, 32), nn.Flatten(), nn.Linear(800, 64), nn.ReLU(), nn.Linear(64, 10)
    )


def initialise(model):
    index = 0
    for module in model.modules():
        if isinstance(module, (nn.Linear, nn.Conv2d)):
            fan_in = module.weight[0].numel()
            for p in (module.weight, module.bias):
                p.data = torch.from_numpy(initial_weights(p.shape, fan_in, SEED, index))
                index += 1
        elif isinstance(module, (nn.BatchNorm1d, nn.BatchNorm2d)):
            index += 2  # ones and zeros, as PyTorch makes them


def batches(directory):
    pixels = read_idx(directory, "train-images-idx3-ubyte")
    labels = read_idx(directory, "train-labels-idx1-ubyte")
    mean, std = np.float32(pixels.mean() / 255), np.float32(pixels.std() / 255)
    digest = xxhash.xxh3_128_intdigest(FINGERPRINT.encode())
    order = EpochOrder(SEED, 0, (digest & MASK, digest >> 64), len(labels))
    for step in range(STEPS):
        chosen = [order.at(step * BATCH + i) for i in range(BATCH)]
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
    header = {"torch": torch.__version__, "seed": SEED, "batch": BATCH, "fingerprint": FINGERPRINT}
    json.dump({**header, "losses": runs}, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
