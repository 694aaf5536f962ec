"""A loop with two evaluations. The first one's loss is least after step BEST: with train.patience the
run ends some evaluations later. The second one's is least at the end. The learning rate follows the
epochs and the evaluations. Its words: data processes, and a file with the milliseconds that a slot
takes longer, or nothing."""
# /// lockstep
# job: evaluated
# seed: 3
# train: {global_batch: 20, slots: 4, epochs: 6, eval_batch: 7, patience: 3}
# eval: {every_steps: 3}
# checkpoint: {every_steps: 4, best: loss}
# ///
import pathlib
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F

import lockstep

BEST = 9
WORKERS, PACE = int(sys.argv[1]), sys.argv[2:]


class Points(torch.utils.data.Dataset):
    def __init__(self, samples, seed):
        self.x = torch.randn(samples, 6, generator=torch.Generator().manual_seed(seed))

    def __len__(self):
        return len(self.x)

    def __getitem__(self, index):
        return self.x[index] + torch.randn(6) * 0.1, (self.x[index].sum() > 0).long()


run = lockstep.start()
model = nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.3), nn.Linear(16, 2))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
by_epoch = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.9)
by_loss = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=0)


def score(batch):
    assert not model.training and not torch.is_grad_enabled()
    x, y = batch
    logits = model(x)
    loss = F.cross_entropy(logits, y).double() + abs(run.step - BEST)
    return {"loss": loss, "correct": (logits.argmax(1) == y).sum(), "drawn": torch.rand(())}


def score_of_other(batch):
    x, y = batch
    return {"loss": 100.0 - run.step, "correct": (model(x).argmax(1) == y).sum(),
            "drawn": torch.rand(()), "mean": x.mean()}


def after():
    last, evaluated = run.last, run.last.evaluation
    if evaluated is not None and evaluated.step == last.step - 1:
        by_loss.step(evaluated.loss)
        run.log(evaluated=evaluated.loss, accuracy=evaluated.accuracy)
    run.log(applied=run.step, loss=last.loss, mean=last.metrics["mean"])


run.keep(model=model, optimizer=optimizer, epoch_scheduler=by_epoch, plateau=by_loss, after_step=after)
run.evaluate(score, torch.utils.data.DataLoader(Points(64, 2), num_workers=WORKERS))
run.evaluate(score_of_other, Points(30, 5), name="other", workers=WORKERS)
for x, y in run.batches(Points(100, 1), workers=WORKERS):
    assert model.training
    if PACE and not run.is_trial:
        time.sleep(float(pathlib.Path(PACE[0]).read_text()) / 1000)
    if run.last is not None:
        run.log(before=run.last.loss)
    loss = F.cross_entropy(model(x), y)
    run.backward(loss, metrics={"mean": x.mean()})
print(f"behind the loop after {run.step} steps", flush=True)
