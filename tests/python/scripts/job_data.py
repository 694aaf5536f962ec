"""A loop over the data that its job names, as its words say: MODEL (mlp or cnn, as Lockstep's own are),
WEIGHTS (a file that gets those that it begins with) and DELAY of a slot in ms (a number, or a file that
has it). With a fourth, `evaluate`, it evaluates on the job's evaluation data."""
# /// lockstep
# job: job-data
# seed: 7
# train: {global_batch: 48, slots: 6, epochs: 2}
# checkpoint: {every_steps: 4}
# ///
import os
import pathlib
import sys
import time

import torch
from safetensors.torch import save_file
from torch import nn
from torch.nn import functional as F

import lockstep

MODEL, WEIGHTS, DELAY = [*sys.argv[1:4], *("cnn", "", "0")[len(sys.argv) - 1:]]
EVALUATES = sys.argv[4:] == ["evaluate"]
CLASSES, LR, KEPT = 4, 0.05, 12


class Mlp(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.fc1 = nn.Linear(shape.numel(), 256)
        self.fc2, self.fc3 = nn.Linear(256, 128), nn.Linear(128, CLASSES)

    def forward(self, x):
        return self.fc3(self.fc2(self.fc1(x.flatten(1)).relu()).relu())


class Cnn(nn.Module):
    def __init__(self, shape):
        super().__init__()
        side = (((shape[1] - 2) // 2) - 2) // 2
        self.conv1, self.conv2 = nn.Conv2d(shape[0], 16, 3), nn.Conv2d(16, 32, 3)
        self.fc1, self.fc2 = nn.Linear(32 * side * side, 64), nn.Linear(64, CLASSES)

    def forward(self, x):
        for conv in (self.conv1, self.conv2):
            x = F.max_pool2d(conv(x).relu(), 2)
        return self.fc2(self.fc1(x.flatten(1)).relu())


def make_model():
    return {"mlp": Mlp, "cnn": Cnn}[MODEL](torch.Size((3, 12, 12)))


def score(model, batch):
    logits = model(batch.x)
    return {"loss": F.cross_entropy(logits, batch.y), "correct": (logits.argmax(1) == batch.y).sum()}


def train():
    run = lockstep.start()
    model = make_model()
    if WEIGHTS:
        save_file(model.state_dict(), f"{WEIGHTS}.{os.getpid()}")
        os.rename(f"{WEIGHTS}.{os.getpid()}", WEIGHTS)
    run.keep(model=model, optimizer=torch.optim.SGD(model.parameters(), LR))
    if EVALUATES:
        run.evaluate(lambda batch: score(model, batch))
    kept = []
    for x, y in run.batches():
        time.sleep(0 if run.is_trial else
                   float(DELAY if DELAY.isdigit() else pathlib.Path(DELAY).read_text()) / 1000)
        if len(kept) < KEPT:  # far more than there are ahead
            kept.append((x, x.clone(), y, y.clone()))
        for was, copy in (pair for x, cx, y, cy in kept for pair in ((x, cx), (y, cy))):
            assert torch.equal(was, copy), "a batch that was held has changed"
        run.backward(F.cross_entropy(model(x), y))
    print(f"behind the loop with {len(kept)} batches", flush=True)


if __name__ == "__main__":
    train()
