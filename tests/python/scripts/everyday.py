"""What a loop of every day has, for chaos.py: natural epochs with code between them, early stopping,
samples drawn by weights, buffers by rule, two evaluations. It takes the words of train.py: MODEL and
PRECISION (not used), WORKERS (data processes), and DELAY, a file of ms that every slot takes longer."""
# /// lockstep
# job: everyday
# seed: 7
# train: {global_batch: 48, slots: 6, max_steps: 40, eval_batch: 20}
# checkpoint: {every_steps: 20, best: loss}
# ///
import pathlib
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F

import lockstep

WORKERS, DELAY = sys.argv[3:]
SAMPLES = 120


class Points(torch.utils.data.Dataset):
    def __init__(self, samples, seed):
        self.x = torch.randn(samples, 8, generator=torch.Generator().manual_seed(seed))

    def __len__(self):
        return len(self.x)

    def __getitem__(self, index):
        return self.x[index] + torch.randn(8) * 0.1, int(self.x[index].sum() > 0), index


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.norm, self.head = nn.Linear(8, 16), nn.BatchNorm1d(16), nn.Linear(16, 2)
        self.register_buffer("seen", torch.zeros(SAMPLES, dtype=torch.int64))
        self.register_buffer("peak", torch.tensor(float("-inf")))
        self.register_buffer("centre", torch.zeros(16))

    def forward(self, x):
        return self.head(F.dropout(F.relu(self.norm(self.body(x) - self.centre)), 0.2, self.training))

    def count(self, x, places):
        self.seen += torch.bincount(places, minlength=SAMPLES)
        self.peak.copy_(torch.maximum(self.peak, x.max()))
        self.centre.lerp_(self.body(x).detach().mean(0), 0.01)


def score(batch):
    x, y, _ = batch
    logits = model(x)
    return {"loss": F.cross_entropy(logits, y), "correct": (logits.argmax(1) == y).sum()}


run = lockstep.start()
data, weights = Points(SAMPLES, 1), torch.arange(1, SAMPLES + 1)
model = Net()
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.9, patience=1)
run.keep(model=model, optimizer=optimizer, own_scheduler=plateau,
         buffers={"seen": "sum", "peak": "max", "centre": "mean"})
run.evaluate(score, Points(50, 2))
run.evaluate(score, Points(30, 3), name="other", workers=int(WORKERS))
for epoch in run.epochs():
    for x, y, places in run.batches(data, workers=int(WORKERS), weights=weights):
        if not run.is_trial:
            time.sleep(float(pathlib.Path(DELAY).read_text()) / 1000)
        loss = F.cross_entropy(model(x), y)
        model.count(x, places)
        run.backward(loss, metrics={"accuracy": (y == 1).float().mean()})
    plateau.step(run.last.evaluation.loss)
    run.log(rate=optimizer.param_groups[0]["lr"], evaluated=run.last.evaluation.loss)
    with torch.no_grad():
        model.head.bias += 0.01 * torch.randn(2)
    if run.step > 0.95 * run.total_steps:
        run.finish()
print(f"after {run.step} steps {int(model.seen.sum())} samples were seen", flush=True)
