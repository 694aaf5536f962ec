#!/usr/bin/env python3
"""Makes optimizers.json: parameters of PyTorch's own optimizers, step by step.

Two parameters, a matrix and a vector, get the same made-up gradients; some steps' gradients are
long enough to be clipped. Needs torch.

    python3 optimizers.py > optimizers.json
"""
import json
import sys

import torch
from torch import optim

STEPS = 12
MATRIX, VECTOR = (3, 5), (7,)


def numbers(shape, key):
    """Numbers in [-1, 1), exact in single precision, without a generator that may change."""
    count = int(torch.tensor(shape).prod())
    state, out = key * 2654435761 % 2**32, []
    for _ in range(count):
        state = (1664525 * state + 1013904223) % 2**32
        out.append((state >> 8) / 2**23 - 1)
    return torch.tensor(out, dtype=torch.float32).reshape(shape)


def train(make, clip_norm, spare_vectors, weight_decay):
    params = [torch.nn.Parameter(numbers(MATRIX, 1)), torch.nn.Parameter(numbers(VECTOR, 2))]
    decays = [weight_decay, 0 if spare_vectors else weight_decay]
    optimizer = make([{"params": [p], "weight_decay": d} for p, d in zip(params, decays)])
    trajectory = []
    for step in range(STEPS):
        for i, p in enumerate(params):
            p.grad = numbers(p.shape, 10 + 2 * step + i) * (3 if step % 3 == 2 else 1)
        if clip_norm:
            torch.nn.utils.clip_grad_norm_(params, clip_norm)
        optimizer.step()
        trajectory.append([float(f"{x:.9g}") for p in params for x in p.detach().flatten().tolist()])
    return trajectory


def main():
    # Settings as in the job file, and PyTorch's optimizer of the same ones.
    cases = [
        ({"name": "sgd", "lr": 0.1}, lambda g: optim.SGD(g, lr=0.1, foreach=False)),
        ({"name": "sgd", "lr": 0.1, "momentum": 0.9, "weight_decay": 0.01},
         lambda g: optim.SGD(g, lr=0.1, momentum=0.9, foreach=False)),
        ({"name": "sgd", "lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.01},
         lambda g: optim.SGD(g, lr=0.1, momentum=0.9, nesterov=True, foreach=False)),
        ({"name": "adam", "lr": 0.01, "beta1": 0.9, "beta2": 0.99, "eps": 1e-8, "weight_decay": 0.05},
         lambda g: optim.Adam(g, lr=0.01, betas=(0.9, 0.99), foreach=False)),
        ({"name": "adamw", "lr": 0.01, "beta1": 0.9, "beta2": 0.999, "eps": 1e-8,
          "weight_decay": 0.1},
         lambda g: optim.AdamW(g, lr=0.01, foreach=False)),
        ({"name": "adamw", "lr": 0.01, "beta1": 0.9, "beta2": 0.999, "eps": 1e-8,
          "weight_decay": 0.1, "spare_vectors": True, "clip_norm": 1.5},
         lambda g: optim.AdamW(g, lr=0.01, foreach=False)),
        ({"name": "nadam", "lr": 0.002, "beta1": 0.9, "beta2": 0.999, "eps": 1e-8,
          "momentum_decay": 0.004, "weight_decay": 0.01},
         lambda g: optim.NAdam(g, lr=0.002, foreach=False)),
        ({"name": "rmsprop", "lr": 0.01, "alpha": 0.99, "eps": 1e-8},
         lambda g: optim.RMSprop(g, lr=0.01, foreach=False)),
        ({"name": "rmsprop", "lr": 0.01, "alpha": 0.9, "eps": 1e-8, "momentum": 0.8,
          "centered": True, "weight_decay": 0.02},
         lambda g: optim.RMSprop(g, lr=0.01, alpha=0.9, momentum=0.8, centered=True, foreach=False)),
        ({"name": "adagrad", "lr": 0.05, "lr_decay": 0.1, "eps": 1e-10, "weight_decay": 0.01},
         lambda g: optim.Adagrad(g, lr=0.05, lr_decay=0.1, foreach=False)),
        ({"name": "adadelta", "lr": 1.0, "rho": 0.9, "eps": 1e-6, "weight_decay": 0.01,
          "clip_norm": 2.0},
         lambda g: optim.Adadelta(g, lr=1.0, foreach=False)),
    ]
    runs = [
        {"optimizer": spec,
         "parameters": train(make, spec.get("clip_norm", 0), spec.get("spare_vectors", False),
                             spec.get("weight_decay", 0))}
        for spec, make in cases
    ]
    json.dump({"torch": torch.__version__, "matrix": MATRIX, "vector": VECTOR, "runs": runs},
              sys.stdout)
    print()


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
