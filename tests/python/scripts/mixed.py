"""A loop with what a step can have, as its words say: PRECISION (fp16: autocast, and a GradScaler whose
scale overflows; bf16: parameters; compiled: fp32, by torch.compile) and PLAIN (a file to which a plain
loop over the same slots writes what it finds; alone only).

Two optimizers, a norm that is clipped to, a mean over some of the samples, a layer that no slot uses,
one that some slots use, and a batch norm that is frozen in the middle of the run.
"""
# /// lockstep
# job: mixed
# seed: 7
# train: {global_batch: 8, slots: 2, epochs: 2, check_every: 5}
# checkpoint: {every_steps: 4}
# ///
import json
import pathlib
import sys

import torch
from torch import nn
from torch.nn import functional as F

import lockstep

PRECISION, PLAIN = [*sys.argv[1:], *("fp16", "")[len(sys.argv) - 1:]]
SAMPLES, STEPS, CLIP_NORM, FREEZE_AT = 48, 12, 0.5, 6
NO_LABEL = 2  # of a third of the samples
RARE = 0.9


class Data(torch.utils.data.Dataset):
    def __init__(self):
        self.x = torch.rand(SAMPLES, 4, generator=torch.Generator().manual_seed(5))

    def __len__(self):
        return SAMPLES

    def __getitem__(self, index):
        return self.x[index], index % 3


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        norm = nn.Identity() if PRECISION == "bf16" else nn.BatchNorm1d(16)
        self.body = nn.Sequential(nn.Linear(4, 16), norm, nn.Tanh())
        self.head, self.rare, self.spare = nn.Linear(16, 2), nn.Linear(16, 2), nn.Linear(16, 2)

    def forward(self, x):
        hidden = self.body(x)
        out = self.head(hidden)
        if (x[:, 0] > RARE).any():
            out = out + self.rare(hidden)
        return out


class Training:
    """The model and optimizers, and the loss of a slot."""

    def __init__(self, is_compiled):
        self.model = model = Net()
        if PRECISION == "bf16":
            model.bfloat16()
        self.adam = torch.optim.AdamW([*model.body.parameters(), *model.rare.parameters(),
                                       *model.spare.parameters()], 0.02, weight_decay=0.5)
        self.sgd = torch.optim.SGD(model.head.parameters(), 0.1, momentum=0.9)
        self.schedule = torch.optim.lr_scheduler.StepLR(self.adam, 3, 0.5)
        self.scaler = torch.amp.GradScaler("cpu", init_scale=2.0 ** 19, growth_interval=3,
                                           enabled=PRECISION == "fp16")
        self.norm = model.body[1]
        if is_compiled:
            model.body = torch.compile(model.body, backend="aot_eager")  # the others take a minute

    def loss(self, x, y):
        """The mean over the samples with a label, and their number."""
        with torch.autocast("cpu", torch.float16, enabled=PRECISION == "fp16"):
            out = self.model(x.bfloat16() if PRECISION == "bf16" else x)
        return F.cross_entropy(out.float(), y, ignore_index=NO_LABEL), int((y != NO_LABEL).sum())

    def after_step(self, step):
        if step >= FREEZE_AT:  # a step that is left out calls nothing
            self.norm.eval()


def plain_loop(weights, slots):
    """The same steps without Lockstep: the weights, and by step the losses and scales."""
    training = Training(is_compiled=False)
    model, scaler = training.model, training.scaler
    parameters, buffers = list(model.parameters()), list(model.buffers())
    put(parameters, weights)
    losses, scales = [0.0] * STEPS, []
    for step in range(STEPS):
        parts = [slot for slot in slots if slot[0] == step]
        samples, counted = sum(len(y) for _, _, y in parts), 0
        before, after = [b.clone() for b in buffers], []
        sums = [None] * len(parameters)
        scales.append(scaler.get_scale())
        for _, x, y in parts:
            put(buffers, before)
            loss, count = training.loss(x, y)
            grads = torch.autograd.grad(scaler.scale(loss * (count / samples)), parameters,
                                        allow_unused=True)
            sums = [s if g is None else g.float() if s is None else s + g.float()
                    for s, g in zip(sums, grads)]
            losses[step] += float(loss.detach()) * count if count else 0
            counted += count
            after.append([b.clone() for b in buffers])
        put(buffers, before)
        losses[step] /= counted
        for p, s in zip(parameters, sums):
            p.grad = None if s is None else (s * (samples / counted)).to(p.dtype)
        for optimizer in (training.adam, training.sgd):
            scaler.unscale_(optimizer)
        if all(bool(p.grad.isfinite().all()) for p in parameters if p.grad is not None):
            nn.utils.clip_grad_norm_(parameters, CLIP_NORM)
            training.adam.step()
            training.sgd.step()
            training.schedule.step()
            put(buffers, [sum(values) / len(values) if values[0].is_floating_point() else values[0]
                          for values in zip(*after)])
            training.after_step(step + 1)
        scaler.update()
    return model.state_dict().values(), losses, scales


@torch.no_grad()
def put(tensors, values):
    for tensor, value in zip(tensors, values):
        tensor.copy_(value)


run = lockstep.start()
training = Training(PRECISION == "compiled")
fresh = [p.detach().clone() for p in training.model.parameters()]
run.keep(model=training.model, adam=training.adam, sgd=training.sgd, schedule=training.schedule,
         scaler=training.scaler, clip_norm=CLIP_NORM, after_step=lambda: training.after_step(run.step))
slots, losses, counts, scales = [], [0.0] * STEPS, [0] * STEPS, [0.0] * STEPS
for x, y in run.batches(Data()):
    loss, count = training.loss(x, y)
    if not run.is_trial:
        slots.append((run.step, x, y))
        losses[run.step] += float(loss.detach()) * count if count else 0
        counts[run.step] += count
        scales[run.step] = training.scaler.get_scale()
    run.backward(loss, count=count)
if PLAIN:
    weights, plain_losses, plain_scales = plain_loop(fresh, slots)
    spare = [bool(torch.equal(now, then)) for now, then in
             zip(training.model.parameters(), fresh)][-2:]
    pathlib.Path(PLAIN).write_text(json.dumps({
        "losses": [loss / count for loss, count in zip(losses, counts)], "plain losses": plain_losses,
        "scales": scales, "plain scales": plain_scales, "spare is as it was": all(spare),
        "steps of rare": len({step for step, x, _ in slots if (x[:, 0] > RARE).any()}),
        "slots of rare": sum(bool((x[:, 0] > RARE).any()) for _, x, _ in slots),
        "weights": max(float((a.float() - b.float()).abs().max()) for a, b in
                       zip(training.model.state_dict().values(), weights))}))
