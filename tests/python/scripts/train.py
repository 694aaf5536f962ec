"""A small training loop, as its words say: MODEL (mlp, cnn or gpt), PRECISION (fp32 or bf16), WORKERS
(data processes), and DELAY, which every slot takes longer, in ms: a number, or a file that has it. `all
both` trains the three models in both precisions, side by side; `drawn` the mlp, on samples drawn by
weights."""
# /// lockstep
# job: script
# seed: 7
# train: {global_batch: 48, slots: 6, epochs: 2}
# checkpoint: {every_steps: 20}
# ///
import hashlib
import pathlib
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F

import lockstep

MODEL, PRECISION, WORKERS, DELAY = [*sys.argv[1:], *("cnn", "fp32", "0", "0")[len(sys.argv) - 1:]]
CASES = ([(model, precision) for model in ("mlp", "cnn", "gpt") for precision in ("fp32", "bf16")]
         if MODEL == "all" else [(MODEL, PRECISION)])
SAMPLES = 500


class Images(torch.utils.data.Dataset):
    """Images whose label is their bright quadrant; read with noise."""

    def __init__(self):
        generator = torch.Generator().manual_seed(5)
        self.labels = torch.randint(4, (SAMPLES,), generator=generator)
        self.images = torch.rand(SAMPLES, 1, 8, 8, generator=generator)
        for image, label in zip(self.images, self.labels.tolist()):
            image[0, label // 2 * 4:label // 2 * 4 + 4, label % 2 * 4:label % 2 * 4 + 4] += 0.5

    def __len__(self):
        return SAMPLES

    def __getitem__(self, index):
        return self.images[index] + torch.randn(1, 8, 8) * 0.05, self.labels[index]


class Words(torch.utils.data.Dataset):
    def __init__(self):
        jumps = torch.randint(32, (SAMPLES, 17), generator=torch.Generator().manual_seed(5))
        self.tokens = torch.where(jumps % 4 == 0, jumps, 3).cumsum(1) % 32

    def __len__(self):
        return SAMPLES

    def __getitem__(self, index):
        return self.tokens[index, :-1], self.tokens[index, 1:]


class Gpt(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(32, 32), nn.Embedding(16, 32)
        layer = nn.TransformerEncoderLayer(32, 2, 64, 0.1, batch_first=True)
        self.blocks = nn.TransformerEncoder(layer, 2)
        self.head = nn.Linear(32, 32, bias=False)
        self.head.weight = self.words.weight

    def forward(self, tokens):
        length = tokens.shape[1]
        mask = nn.Transformer.generate_square_subsequent_mask(length, device=tokens.device)
        hidden = self.words(tokens) + self.places(torch.arange(length, device=tokens.device))
        return self.head(self.blocks(hidden, mask=mask, is_causal=True)).flatten(0, 1)


def make_data():
    if MODEL == "all":
        return torch.utils.data.StackDataset(Images(), Words())
    return Words() if MODEL == "gpt" else Images()


def make_model(kind):
    if kind in ("mlp", "drawn"):
        return nn.Sequential(nn.Flatten(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 4))
    if kind == "gpt":
        return Gpt()
    return nn.Sequential(nn.Conv2d(1, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Dropout(0.2),
                         nn.Flatten(), nn.Linear(8 * 36, 4))


def loss_of(model, precision, inputs, labels):
    inputs, labels = inputs.to(run.device), labels.to(run.device)
    with torch.autocast(run.device.type, torch.bfloat16, enabled=precision == "bf16"):
        return F.cross_entropy(model(inputs).float(), labels.flatten())


def loss_of_all(batch):
    images, words = batch
    return sum(loss_of(models[f"{kind}-{precision}"], precision, *(words if kind == "gpt" else images))
               for kind, precision in CASES)


def sha256(model):
    tensors = b"".join(tensor.cpu().numpy().tobytes() for tensor in model.state_dict().values())
    return hashlib.sha256(tensors).hexdigest()


def delay_s():
    return float(DELAY if DELAY.isdigit() else pathlib.Path(DELAY).read_text()) / 1000


run = lockstep.start()
models = nn.ModuleDict({f"{kind}-{precision}": make_model(kind) for kind, precision in CASES})
model = (models if MODEL == "all" else models[f"{MODEL}-{PRECISION}"]).to(run.device)
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=40)
# torch averages whole numbers on the CPU only.
average = torch.optim.swa_utils.AveragedModel(model, use_buffers=run.device.type == "cpu")


def after_step():
    average.update_parameters(model)
    run.log(applied=run.step)


# Clipped together, one model's gradients would change the others' weights.
run.keep(model=model, optimizer=optimizer, scheduler=scheduler, average=average, after_step=after_step,
         clip_norm=None if MODEL == "all" else 1.0)
run.on_writer(lambda: print(f"writer since step {run.step}", flush=True))
data = make_data()
weights = torch.where(data.labels == 0, 5.0, 1.0) if MODEL == "drawn" else None
for batch in run.batches(data, workers=int(WORKERS), weights=weights, device=run.device):
    time.sleep(0 if run.is_trial else delay_s())
    loss = loss_of_all(batch) if MODEL == "all" else loss_of(model, PRECISION, *batch)
    run.log(lr=optimizer.param_groups[0]["lr"])
    run.backward(loss)
print(f"behind the loop after {run.step} steps", flush=True)
if MODEL == "all":
    for name, each in models.items():
        print(f"weights of {name}: {sha256(each)}", flush=True)
