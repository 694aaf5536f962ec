"""Two networks that take turns on each batch, for chaos.py. It takes the words of train.py: MODEL
and PRECISION (not used), WORKERS (data processes), and DELAY, a file of ms that every slot takes
longer."""
# /// lockstep
# job: phases
# seed: 7
# train: {global_batch: 48, slots: 6, epochs: 2}
# checkpoint: {every_steps: 20}
# ///
import pathlib
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F

import lockstep

WORKERS, DELAY = sys.argv[3:]


class Points(torch.utils.data.Dataset):
    """Points on a ring; read with noise."""

    def __len__(self):
        return 500

    def __getitem__(self, index):
        angle = torch.tensor(index / 500 * 6.2832)
        return torch.stack([angle.cos(), angle.sin()]) + torch.randn(2) * 0.05


run = lockstep.start()
drawer = nn.Sequential(nn.Linear(8, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 2))
judge = nn.Sequential(nn.Linear(2, 32), nn.LeakyReLU(), nn.Dropout(0.1), nn.Linear(32, 1))
d = torch.optim.AdamW(judge.parameters(), 2e-3)
g = torch.optim.AdamW(drawer.parameters(), 2e-3)
average = torch.optim.swa_utils.AveragedModel(drawer, use_buffers=True)


def after_step():
    if run.phase == "g":
        average.update_parameters(drawer)
    run.log(applied=run.step)


run.keep(drawer=drawer, judge=judge, d=d, g=g, average=average, after_step=after_step, clip_norm=1.0,
         scheduler=torch.optim.lr_scheduler.CosineAnnealingLR(d, T_max=40),
         epoch_scheduler=torch.optim.lr_scheduler.StepLR(g, 1, 0.9))
for phase, points in run.batches(Points(), workers=int(WORKERS), phases=("d", "g")):
    time.sleep(0 if run.is_trial else float(pathlib.Path(DELAY).read_text()) / 1000)
    drawn, one = drawer(torch.randn(len(points), 8)), torch.ones(len(points), 1)
    if phase == "d":
        judged = judge(drawn.detach())
        run.backward(F.binary_cross_entropy_with_logits(judge(points), one)
                     + F.binary_cross_entropy_with_logits(judged, one - 1),
                     metrics={"found": (judged < 0).float().mean()})
    else:
        run.backward(F.binary_cross_entropy_with_logits(judge(drawn), one))
print(f"behind the loop after {run.step} steps", flush=True)
