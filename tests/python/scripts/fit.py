"""A LightningModule under lockstep.fit(), as its words say: BASE (lightning: the real one; duck: a
torch module with the interface), DELAY (every slot takes longer, in ms: a number or a file that has
it), PLAIN (a file to which a plain loop over the same slots writes what it finds; alone only).

All hooks that fit() calls do something that would show: in the weights, or in what is printed.
"""
# /// lockstep
# job: fit
# seed: 7
# train: {global_batch: 24, slots: 3, epochs: 3, eval_batch: 16}
# checkpoint: {every_steps: 10}
# ///
import copy
import json
import pathlib
import sys
import time

import torch
import torchmetrics
from torch import nn
from torch.nn import functional as F

import lockstep

BASE, DELAY, PLAIN = [*sys.argv[1:], *("duck", "0", "")[len(sys.argv) - 1:]]
SAMPLES = 102  # 5 steps an epoch, the last of 6 samples
if BASE == "lightning":
    from pytorch_lightning import LightningModule
else:
    class LightningModule(nn.Module):
        @property
        def current_epoch(self):
            return self.trainer.current_epoch


HELD_OUT = torch.utils.data.TensorDataset(torch.linspace(0, 1, 300).view(50, 6),
                                          torch.arange(50) // 25)


class Data(torch.utils.data.Dataset):
    def __init__(self):
        generator = torch.Generator().manual_seed(5)
        self.inputs = torch.rand(SAMPLES, 6, generator=generator)
        self.labels = (self.inputs.sum(1) > 3).long()

    def __len__(self):
        return SAMPLES

    def __getitem__(self, index):
        return self.inputs[index] + torch.randn(6) * 0.01, self.labels[index]


class Classifier(LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 2))
        self.average = copy.deepcopy(self.net[3]).requires_grad_(False)
        self.counted = torchmetrics.Accuracy(task="multiclass", num_classes=2)
        self.noise = 0.0
        self.clipped = 0  # steps whose gradient was
        self.slots = []  # that a plain loop computes again
        self.right = []  # by slot: its epoch, and how many predictions were right

    def configure_optimizers(self):
        assert self.trainer.estimated_stepping_batches == 15 and self.trainer.max_epochs == 3
        optimizer = torch.optim.AdamW(self.net.parameters(), 2e-2)
        by_step = torch.optim.lr_scheduler.LinearLR(optimizer, 0.1, total_iters=4)
        by_epoch = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
        return [optimizer], [{"scheduler": by_step, "interval": "step"}, by_epoch]

    def on_train_epoch_start(self):
        self.noise = 0.1 * self.current_epoch
        torch.rand(3)  # a slot draws the same numbers, whether it is the first of an epoch or not

    def on_after_batch_transfer(self, batch, dataloader_idx):
        inputs, labels = batch
        if self.trainer.validating:
            assert (labels == 0).all() or not dataloader_idx
            return inputs, labels
        return inputs + self.noise * torch.randn_like(inputs), labels

    def training_step(self, batch, batch_idx):
        inputs, labels = batch
        time.sleep(0 if run.is_trial else delay_s())
        logits = self.net(inputs)
        loss = F.cross_entropy(logits, labels, label_smoothing=0.01 * batch_idx)
        self.log("accuracy", (logits.argmax(1) == labels).float().mean(), prog_bar=True)
        self.counted.update(logits, labels)
        self.log("counted", self.counted, on_step=False, on_epoch=True)
        if PLAIN and not run.is_trial:
            self.right.append((self.current_epoch, int((logits.argmax(1) == labels).sum())))
            self.slots.append((run.step, inputs.clone().cpu(), labels.cpu(), float(loss.detach())))
        return {"loss": loss}

    def val_dataloader(self):
        return [torch.utils.data.DataLoader(HELD_OUT, batch_size=32),
                torch.utils.data.Subset(HELD_OUT, range(20))]

    def validation_step(self, batch, batch_idx, dataloader_idx=0):
        inputs, labels = batch
        assert len(labels) <= (20 if dataloader_idx else 50)
        logits = self.net(inputs)
        self.log_dict({"val_loss": F.cross_entropy(logits, labels),
                       "accuracy": (logits.argmax(1) == labels).float().mean()})

    def on_before_optimizer_step(self, optimizer):
        norm = torch.stack([p.grad.norm() for p in self.net.parameters()]).norm()
        self.clipped += int(norm > 0.5)
        self.log("norm", norm)

    def on_before_zero_grad(self, optimizer):
        with torch.no_grad():
            for mean, now in zip(self.average.parameters(), self.net[3].parameters()):
                mean.lerp_(now, 0.1)

    def on_train_epoch_end(self):
        with torch.no_grad():
            self.net[3].bias.mul_(0.9)

    def on_save_checkpoint(self, checkpoint):
        checkpoint["clipped"] = self.clipped

    def on_load_checkpoint(self, checkpoint):
        self.clipped = checkpoint["clipped"]


def delay_s():
    return float(DELAY if DELAY.isdigit() else pathlib.Path(DELAY).read_text()) / 1000


def plain_loop(module, slots):
    """The same slots without Lockstep: the losses of its steps, and its weights."""
    optimizer = torch.optim.AdamW(module.net.parameters(), 2e-2)
    by_step = torch.optim.lr_scheduler.LinearLR(optimizer, 0.1, total_iters=4)
    by_epoch = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
    losses = []
    for step in range(15):
        parts = [slot for slot in slots if slot[0] == step]
        samples = sum(len(labels) for _, _, labels, _ in parts)
        before, after = copy.deepcopy(module.net[1].state_dict()), []
        optimizer.zero_grad()
        losses.append(0.0)
        for _, inputs, labels, _ in parts:
            module.net[1].load_state_dict(before)
            loss = F.cross_entropy(module.net(inputs), labels, label_smoothing=0.01 * (step % 5))
            (loss * len(labels) / samples).backward()
            losses[-1] += float(loss.detach()) * len(labels) / samples
            after.append(copy.deepcopy(module.net[1].state_dict()))
        for name in ("running_mean", "running_var"):
            getattr(module.net[1], name).copy_(torch.stack([s[name] for s in after]).mean(0))
        torch.nn.utils.clip_grad_norm_(module.net.parameters(), 0.5)
        optimizer.step()
        by_step.step()
        module.on_before_zero_grad(optimizer)
        if step % 5 == 4:
            by_epoch.step()
            module.on_train_epoch_end()
    return losses


run = lockstep.start()
model = Classifier()
fresh = copy.deepcopy(model)
lockstep.fit(model, torch.utils.data.DataLoader(Data(), batch_size=8, shuffle=True),
             gradient_clip_val=0.5, max_epochs=3, metrics=["counted"])
with torch.no_grad():
    inputs, labels = (tensor.to(run.device) for tensor in HELD_OUT.tensors)
    logits = model.eval().net(inputs)
    held_out, other = F.cross_entropy(logits, labels), F.cross_entropy(logits[:20], labels[:20])
print(f"behind fit after {run.step} steps, {model.clipped} clipped, held out {held_out:.5f}, "
      f"other {other:.5f}", flush=True)
if PLAIN:
    step_losses = [0.0] * 15
    for step, _, labels, loss in model.slots:
        step_losses[step] += loss * len(labels)
    samples = [24, 24, 24, 24, 6] * 3
    found = {"fit": [loss / n for loss, n in zip(step_losses, samples)],
             "counted": [sum(right for at, right in model.right if at == epoch) / SAMPLES
                         for epoch in range(3)],
             "plain": plain_loop(fresh, model.slots),
             "weights": max(float((a.cpu() - b).abs().max()) for a, b in
                            zip(model.state_dict().values(), fresh.state_dict().values()))}
    pathlib.Path(PLAIN).write_text(json.dumps(found))
