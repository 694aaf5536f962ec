#!/usr/bin/env python3
"""Makes precision.json: the first 20 losses of PyTorch's own training in mixed precision.

As losses.py, with torch.autocast around the forward, and for fp16 with torch.amp.GradScaler. The
runs with the larger scale begin with overflows; "scales" are those after each step.

    python3 precision.py [directory of the IDX files] > precision.json

avx2/precision.json is of a processor without AVX-512 (losses.py).
"""
import json
import sys

import torch
from torch import nn

from losses import BATCH, FINGERPRINT, OPTIMIZERS, SEED, STEPS, batches, cnn, initialise, mlp

TYPES = {"bf16": torch.bfloat16, "fp16": torch.float16}
SCALE, OVERFLOWING_SCALE = 2.0**16, 2.0**30


def train(model, optimizer, data, precision, scale):
    initialise(model)
    optimizer = OPTIMIZERS[optimizer](model.parameters())
    scaler = torch.amp.GradScaler("cpu", init_scale=scale, enabled=precision == "fp16")
    losses, scales = [], []
    for x, y in data:
        with torch.autocast("cpu", dtype=TYPES[precision]):
            logits = model(x)
        loss = nn.functional.cross_entropy(logits.float(), y)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.item())
        scales.append(scaler.get_scale())
    return {"losses": losses, "scales": scales}


def main():
    torch.set_num_threads(1)
    directory = sys.argv[1] if len(sys.argv) > 1 else "/usr/share/datasets/fashion-mnist"
    data = list(batches(directory))
    runs = []

    def add(make, optimizer, precision, scale, steps=STEPS):
        runs.append({"model": make.__name__, "optimizer": optimizer, "precision": precision,
                     "scale": scale,
                     **train(make(False), optimizer, data[:steps], precision, scale)})

    for optimizer in OPTIMIZERS:
        add(mlp, optimizer, "bf16", SCALE)
        add(cnn, optimizer, "bf16", SCALE)
        add(mlp, optimizer, "fp16", SCALE)
        add(mlp, optimizer, "fp16", OVERFLOWING_SCALE)
    add(cnn, "sgd", "fp16", SCALE, steps=2)  # convolutions in fp16 are slow on CPUs
    header = {"torch": torch.__version__, "seed": SEED, "batch": BATCH, "fingerprint": FINGERPRINT}
    json.dump({**header, "runs": runs}, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
