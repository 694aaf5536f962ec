#!/usr/bin/env python3
"""CPU milliseconds of a step where Python itself costs most: a model of four small tensors, and one
of 2,000; in a bare loop, and alone under Lockstep.

    small_steps.py --python PYTHON [--rounds 5]

PYTHON has torch and our package (deploy/quickstart.sh). Prints the median (least to most) of each, in
turns, and of the rounds' own ratios.
"""
# /// lockstep
# job: small-steps
# train: {global_batch: 8, slots: 1, check_every: 0}
# checkpoint: {every_steps: 0}
# ///
import argparse
import os
import re
import sys
import time

from script_loops import output_of, shown

STEPS = {"tiny": 3000, "many": 60}


def model_of(kind):
    import torch

    class Many(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.factors = torch.nn.ParameterList(torch.ones(16) for _ in range(2000))

        def forward(self, x):
            for factor in self.factors:
                x = x * factor
            return x

    torch.manual_seed(1)
    return Many() if kind == "many" else torch.nn.Sequential(
        torch.nn.Linear(16, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3))


def train(mode, kind):
    run = None
    if mode == "alone":
        import lockstep
        run = lockstep.start()
    import torch
    torch.set_num_threads(1)
    model, steps = model_of(kind), STEPS[kind]
    rows = torch.utils.data.TensorDataset(torch.ones(400, 16))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, foreach=kind == "many")
    times = {}  # by step

    def loss_of(x):
        return model(x).square().mean()

    if run is None:
        for step in range(steps):
            times[step] = time.process_time()
            begin = step * 8 % 392
            loss_of(rows.tensors[0][begin:begin + 8]).backward()
            optimizer.step()
            optimizer.zero_grad()
    else:
        run.keep(model=model, optimizer=optimizer)
        for (x,) in run.batches(rows):
            times.setdefault(run.step, time.process_time())
            run.backward(loss_of(x))
    first, last = steps // 10, steps - 1
    print(f"cpu_ms {1000 * (times[last] - times[first]) / (last - first):.4f}", flush=True)


def measure(python, mode, kind):
    text = output_of([python, __file__, mode, kind],
                     env={**os.environ, "OMP_NUM_THREADS": "1",
                          "LOCKSTEP_TRAIN__MAX_STEPS": str(STEPS[kind])})
    return float(re.findall(r"cpu_ms ([0-9.]+)", text)[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", required=True)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    for kind in STEPS:
        rounds = [{mode: measure(options.python, mode, kind) for mode in ("bare", "alone")}
                  for _ in range(options.rounds)]
        print(f"{kind}: bare {shown([r['bare'] for r in rounds])} ms, alone "
              f"{shown([r['alone'] for r in rounds])} ms, alone to bare "
              f"{shown([r['alone'] / r['bare'] for r in rounds])}", flush=True)


if sys.argv[1:2] in (["bare"], ["alone"]):
    train(*sys.argv[1:3])
else:
    main()
