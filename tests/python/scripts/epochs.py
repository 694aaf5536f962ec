"""A loop over epochs, with code between them that changes what is kept: by the evaluation, by the epoch,
and by what it draws. Its words: a file with the milliseconds that a slot takes longer; or "plain": the
loop of PyTorch alone over the same batches follows, and has the same weights."""
# /// lockstep
# job: epochs
# seed: 5
# train: {global_batch: 16, slots: 4, epochs: 4, eval_batch: 8, check_every: 3}
# checkpoint: {every_steps: 5}
# ///
import copy
import pathlib
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F

import lockstep

IS_PLAIN = "plain" in sys.argv[1:]
PACE = None if IS_PLAIN or len(sys.argv) < 2 else pathlib.Path(sys.argv[1])

run = lockstep.start()
generator = torch.Generator().manual_seed(1)
data = torch.utils.data.TensorDataset(torch.arange(72), torch.randn(72, 8, generator=generator),
                                      torch.randint(4, (72,), generator=generator))
held_out = torch.utils.data.TensorDataset(torch.randn(20, 8, generator=generator),
                                          torch.randint(4, (20,), generator=generator))
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))


def made_for(net):
    # The last layer waits; its weight is frozen, and the first bias in the last epoch.
    optimizer = torch.optim.SGD([{"params": net[0].parameters()}, {"params": net[2].parameters(), "lr": 0.0}],
                                0.1, momentum=0.9)
    return optimizer, torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=0)


def score(batch, net=model):
    x, y = batch
    return F.cross_entropy(net(x), y)


def between(epoch, evaluated, drawn, net, optimizer, scheduler):
    if epoch == 1:
        optimizer.param_groups[1]["lr"] = 0.05
    net[2].weight.requires_grad_(epoch > 0)
    net[0].bias.requires_grad_(epoch != 2)
    scheduler.step(evaluated)
    with torch.no_grad():
        net[0].bias += drawn * (1 + epoch) * 0.01


optimizer, scheduler = made_for(model)
first = copy.deepcopy(model)
run.keep(model=model, optimizer=optimizer, own_scheduler=scheduler)
model[2].weight.requires_grad_(False)
run.evaluate(score, held_out)
epochs, batches = [], []
for epoch in run.epochs():
    model.train()
    for index, x, y in run.batches(data):
        if PACE is not None and not run.is_trial:
            time.sleep(float(PACE.read_text()) / 1000)
        if not run.is_trial:
            assert epoch == run.epoch == run.step // 5, (epoch, run.epoch, run.step)
            batches.append((x, y))
        run.backward(F.cross_entropy(model(x), y))
    assert not run.is_trial and run.epoch == epoch and run.step == 5 * (epoch + 1)
    evaluated = run.last.evaluation
    assert evaluated.step == run.step, (evaluated, run.step)
    drawn = torch.rand(16)
    between(epoch, evaluated.loss, drawn, model, optimizer, scheduler)
    epochs.append((int(epoch), evaluated.loss, drawn))
    run.log(epoch=epoch.__index__(), evaluated=evaluated.loss)
    print(f"epoch {epoch} is over", flush=True)
print(f"behind the loop after {run.step} steps and {len(epochs)} epochs", flush=True)

if IS_PLAIN:
    optimizer, scheduler = made_for(first)
    first[2].weight.requires_grad_(False)
    given = iter(batches)
    for epoch, loss, drawn in epochs:
        for step in range(5):
            slots = [next(given) for _ in range(4)]
            samples = sum(len(y) for _, y in slots)
            trained = [parameter for parameter in first.parameters() if parameter.requires_grad]
            a, b, c, d = (torch.autograd.grad(F.cross_entropy(first(x), y) * (len(y) / samples), trained)
                          for x, y in slots)
            optimizer.zero_grad()
            for i, parameter in enumerate(trained):
                parameter.grad = (a[i] + b[i]) + (c[i] + d[i])
            optimizer.step()
        between(epoch, loss, drawn, first, optimizer, scheduler)
    same = all(torch.equal(a, b) for a, b in zip(model.parameters(), first.parameters()))
    print("the plain loop has the same weights" if same else "the plain loop has other weights")
