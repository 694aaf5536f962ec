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


def after_warmup(optimizer, warmup, make):
    rise = s.LinearLR(optimizer, 1 / warmup, 1, total_iters=warmup - 1)
    return s.SequentialLR(optimizer, [rise, make(optimizer)], milestones=[warmup])


def main():
    cases = [
        ({"name": "constant"}, 10, lambda o: s.ConstantLR(o, 1)),
        ({"name": "cosine", "min_lr": 1e-4}, 60, lambda o: s.CosineAnnealingLR(o, 60, eta_min=1e-4)),
        ({"name": "cosine", "warmup_steps": 8, "min_lr": 1e-3}, 50,
         lambda o: after_warmup(o, 8, lambda p: s.CosineAnnealingLR(p, 42, eta_min=1e-3))),
        ({"name": "step", "step_every": 7, "gamma": 0.3}, 40, lambda o: s.StepLR(o, 7, 0.3)),
        ({"name": "step", "step_every": 7, "gamma": 0.3, "warmup_steps": 5}, 40,
         lambda o: after_warmup(o, 5, lambda p: s.StepLR(p, 7, 0.3))),
        ({"name": "linear", "min_lr": 0.002}, 30, lambda o: s.LinearLR(o, 1, 0.1, total_iters=30)),
        ({"name": "linear", "min_lr": 0.002, "warmup_steps": 6}, 46,
         lambda o: after_warmup(o, 6, lambda p: s.LinearLR(p, 1, 0.1, total_iters=40))),
        ({"name": "exponential", "gamma": 0.97}, 40, lambda o: s.ExponentialLR(o, 0.97)),
        ({"name": "cyclic", "min_lr": 0.001, "max_lr": 0.05, "cycle_up": 6, "cycle_down": 4,
          "gamma": 1}, 35,
         lambda o: s.CyclicLR(o, 0.001, 0.05, 6, 4, cycle_momentum=False)),
        ({"name": "cyclic", "min_lr": 0.001, "max_lr": 0.05, "cycle_up": 5, "gamma": 0.5}, 40,
         lambda o: s.CyclicLR(o, 0.001, 0.05, 5, mode="triangular2", cycle_momentum=False)),
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
