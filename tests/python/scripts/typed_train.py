"""A user's script, which mypy checks against the types of the package (tests/cluster/wheel_test.py). A line
that is wrong names the error that mypy has to find there. No test runs this file."""
# /// lockstep
# train: {global_batch: 8, slots: 2, epochs: 1}
# ///
from typing import assert_type

import torch
from torch import nn

import lockstep


class Finetuner(lockstep.Trainer):
    pass


run: lockstep.Run = lockstep.start()
model = nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
run.keep(model=model, optimizer=optimizer, clip_norm=1.0)
for epoch in run.epochs():
    for x, y in run.batches(torch.utils.data.TensorDataset(torch.zeros(8, 2)), workers=2):
        run.backward(nn.functional.mse_loss(model(x), y))
        assert_type(run.step, int)
    last = run.last
    last.loss  # type: ignore[union-attr]
    if last is not None and last.evaluation is not None:
        assert_type(last.evaluation.loss, float)
    if epoch.number == "three":  # type: ignore[attr-defined]
        run.finish()
train, evaluation = lockstep.export_program(model, torch.zeros(2, 2), "model.pt2")
assert_type(train, str)

run.keep(model, optimizer)  # type: ignore[call-arg]
run.batches(workers="two")  # type: ignore[arg-type]
lockstep.begin()  # type: ignore[attr-defined]
