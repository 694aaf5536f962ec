#!/usr/bin/env python3
"""Makes muon.json: parameters under PyTorch's Muon, and a vector under AdamW.

The parameters get the same made-up gradients as in optimizers.py; some steps' gradients are long
enough to be clipped. Needs torch 2.11.

    python3 muon.py > muon.json
"""
import json
import sys

import torch
from torch import optim

from optimizers import numbers

STEPS = 20
KEPT = (1, 2, 10, 20)  # steps after which the parameters are written down
SHAPES = ((3, 5), (7, 4), (4, 4), (6,))  # wide, tall, square, and not a matrix


def train(spec):
    params = [torch.nn.Parameter(numbers(shape, 1 + i)) for i, shape in enumerate(SHAPES)]
    matrices, others = [p for p in params if p.ndim == 2], [p for p in params if p.ndim != 2]
    muon = optim.Muon(matrices, lr=spec["lr"], momentum=spec["momentum"],
                      nesterov=spec["nesterov"], weight_decay=spec["weight_decay"],
                      adjust_lr_fn=spec["adjust_lr"])
    adamw = optim.AdamW(others, lr=spec["lr"], betas=(spec["beta1"], spec["beta2"]),
                        eps=spec["eps"], weight_decay=spec["weight_decay"], foreach=False)
    kept = []
    for step in range(STEPS):
        for i, p in enumerate(params):
            p.grad = numbers(p.shape, 10 + 4 * step + i) * (3 if step % 3 == 2 else 1)
        if spec["clip_norm"]:
            torch.nn.utils.clip_grad_norm_(params, spec["clip_norm"])
        muon.step()
        adamw.step()
        if step + 1 in KEPT:
            kept.append([float(f"{x:.9g}") for p in params for x in p.detach().flatten().tolist()])
    return kept


def main():
    usual = {"name": "muon", "lr": 0.001, "momentum": 0.95, "nesterov": True, "weight_decay": 0.1,
             "beta1": 0.9, "beta2": 0.999, "eps": 1e-8, "clip_norm": 0.0,
             "adjust_lr": "match_rms_adamw"}
    specs = [usual, {**usual, "adjust_lr": "original"}, {**usual, "nesterov": False},
             {**usual, "momentum": 0.5, "weight_decay": 0.5, "clip_norm": 1.5}]
    json.dump({"torch": torch.__version__, "shapes": SHAPES, "steps": KEPT,
               "runs": [{"optimizer": spec, "parameters": train(spec)} for spec in specs]},
              sys.stdout)
    print()


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
