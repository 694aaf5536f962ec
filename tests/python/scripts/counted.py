"""Metrics of torchmetrics that are kept, and reset between two epochs. Its words: a file with the milliseconds
that a slot takes longer; "plain", for a run of one worker: they are compared with metrics that saw every
batch."""
# /// lockstep
# job: counted
# seed: 5
# train: {global_batch: 16, slots: 4, epochs: 4, check_every: 3}
# checkpoint: {every_steps: 4}
# ///
import pathlib
import sys
import time

import torch
import torchmetrics
from torch import nn
from torch.nn import functional as F

import lockstep

PACE = pathlib.Path(sys.argv[1])
IS_PLAIN = "plain" in sys.argv[2:]


def counters():
    return (torchmetrics.Accuracy(task="multiclass", num_classes=4), torchmetrics.MaxMetric(),
            torchmetrics.SumMetric())


def count(into, scores, labels):
    accuracy, peak, samples = into
    accuracy.update(scores, labels)
    peak(scores.detach())
    samples.update(torch.ones(len(labels)))


run = lockstep.start()
generator = torch.Generator().manual_seed(1)
data = torch.utils.data.TensorDataset(torch.randn(72, 8, generator=generator),
                                      torch.randint(4, (72,), generator=generator))
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
accuracy, peak, samples = kept = counters()
run.keep(model=model, optimizer=optimizer, accuracy=accuracy, peak=peak, samples=samples)
seen = []
for epoch in run.epochs():
    for x, y in run.batches(data):
        if not run.is_trial:
            time.sleep(float(PACE.read_text()) / 1000)
        scores = model(x)
        count(kept, scores, y)
        run.backward(F.cross_entropy(scores, y))
        if not run.is_trial:
            seen.append((scores.detach().clone(), y))
    values = [float(metric.compute()) for metric in kept]
    run.log(accuracy=values[0], peak=values[1], samples=values[2])
    if IS_PLAIN:
        plain = counters()
        for scores, y in seen:
            count(plain, scores, y)
        expected = [float(metric.compute()) for metric in plain]
        assert values == expected, (values, expected)
    seen.clear()
    for metric in kept:
        metric.reset()
