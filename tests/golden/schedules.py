#!/usr/bin/env python3
"""Makes schedules.json: learning rates of PyTorch's own schedulers, step by step.

    python3 schedules.py > schedules.json
"""
import json
import sys

import torch
from torch.optim import lr_scheduler as s

LR = 0.02


def rates(make, steps):
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=LR)
    scheduler = make(optimizer)
    out = []
    for _ in range(steps):
        out.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    return out


def cosine_with_warmup(optimizer, warmup, total, min_lr):
    rise = s.LinearLR(optimizer, 1 / warmup, 1, total_iters=warmup - 1)
    fall = s.CosineAnnealingLR(optimizer, total - warmup, eta_min=min_lr)
    return s.SequentialLR(optimizer, [rise, fall], milestones=[warmup])


def main():
    cases = [
        ({"name": "constant"}, 10, lambda o: s.ConstantLR(o, 1)),
        ({"name": "cosine", "min_lr": 1e-4}, 60, lambda o: s.CosineAnnealingLR(o, 60, eta_min=1e-4)),
        ({"name": "cosine", "warmup_steps": 8, "min_lr": 1e-3}, 50,
         lambda o: cosine_with_warmup(o, 8, 50, 1e-3)),
        ({"name": "step", "step_every": 7, "gamma": 0.3}, 40, lambda o: s.StepLR(o, 7, 0.3)),
        ({"name": "onecycle", "max_lr": 0.1, "pct_start": 0.3, "div_factor": 25,
          "final_div_factor": 1e4}, 100,
         lambda o: s.OneCycleLR(o, 0.1, 100, pct_start=0.3, cycle_momentum=False)),
        ({"name": "onecycle", "max_lr": 0.006, "pct_start": 0.21, "div_factor": 10,
          "final_div_factor": 100}, 37,
         lambda o: s.OneCycleLR(o, 0.006, 37, pct_start=0.21, div_factor=10, final_div_factor=100,
                                cycle_momentum=False)),
    ]
    runs = [{"schedule": spec, "lr": rates(make, steps)} for spec, steps, make in cases]
    json.dump({"torch": torch.__version__, "base_lr": LR, "runs": runs}, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
