"""Trains as job_data.py does, in eager PyTorch without Lockstep: MODEL DATA FINGERPRINT WEIGHTS
STEPS. Prints the losses."""
import json
import pathlib
import sys

import numpy
import torch
import xxhash
from safetensors.torch import load_file
from torch.nn import functional as F

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "golden"))
from order import MASK, EpochOrder  # noqa: E402
import job_data  # noqa: E402: its models

SEED, BATCH = 7, 48
_, _, data, fingerprint, weights, steps = sys.argv

pixels = numpy.load(f"{data}/train_images.npy").transpose(0, 3, 1, 2).astype(numpy.float64) / 255
mean, std = (f(pixels, axis=(0, 2, 3), keepdims=True) for f in (numpy.mean, numpy.std))
x = torch.from_numpy(((pixels - mean) / std).astype(numpy.float32))
y = torch.from_numpy(numpy.load(f"{data}/train_labels.npy"))
digest = xxhash.xxh3_128_intdigest(fingerprint.encode())
model = job_data.make_model()
model.load_state_dict(load_file(weights))
optimizer = torch.optim.SGD(model.parameters(), job_data.LR)
losses, epoch = [], 0
while len(losses) < int(steps):
    order = EpochOrder(SEED, epoch, (digest & MASK, digest >> 64), len(x))
    for begin in range(0, len(x), BATCH):
        chosen = [order.at(i) for i in range(begin, min(begin + BATCH, len(x)))]
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x[chosen]), y[chosen])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    epoch += 1
print(json.dumps(losses[:int(steps)]))
