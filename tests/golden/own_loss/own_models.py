"""Models with losses of their own, for make.py: rows of four numbers and a label."""
import torch
from torch import nn
from torch.nn import functional

COLUMNS, CLASSES, IGNORED = 4, 3, 2


class Body(nn.Module):
    def __init__(self, outputs):
        super().__init__()
        self.hidden = nn.Linear(COLUMNS, 8)
        self.out = nn.Linear(8, outputs)

    def forward(self, x):
        return self.out(torch.tanh(self.hidden(x)))


class OneOutput(Body):
    """Logits (B, 1), for train.loss."""

    def __init__(self):
        super().__init__(1)


class PerSample(Body):
    """One loss a sample, and nothing else."""

    def __init__(self):
        super().__init__(CLASSES)

    def forward(self, x, label):
        return functional.cross_entropy(super().forward(x), label, reduction="none")


class Weighted(Body):
    """Class weights and an ignored label: the mean is over the weights. The labels come first."""

    def __init__(self):
        super().__init__(CLASSES)
        self.register_buffer("weights", torch.tensor([1.0, 3.0, 0.5]))

    def forward(self, target, x):
        logits = super().forward(x)
        loss = functional.cross_entropy(logits, target, weight=self.weights,
                                        ignore_index=IGNORED, reduction="none")
        weight = torch.where(target == IGNORED, 0.0, self.weights[target])
        return {"loss": loss, "weight": weight, "hit": (logits.argmax(1) == target).float(),
                "size": logits.abs().mean(1)}


class WeightedLogits(Body):
    """Weighted's logits from its inputs alone, for model.predict_path."""

    def __init__(self):
        super().__init__(CLASSES)


class DenseLogits(nn.Module):
    """Images of 8x8: a class for each pixel."""

    def __init__(self):
        super().__init__()
        self.near = nn.Conv2d(1, 4, 3, padding=1)
        self.norm = nn.BatchNorm2d(4)
        self.classes = nn.Conv2d(4, CLASSES, 1)

    def forward(self, x):
        return self.classes(torch.relu(self.norm(self.near(x))))


class Dense(DenseLogits):
    """Its loss: every pixel is of the image's class."""

    def forward(self, x, label):
        logits = super().forward(x)
        wanted = label[:, None, None].expand(-1, logits.size(2), logits.size(3))
        loss = functional.cross_entropy(logits, wanted, reduction="none").mean((1, 2))
        return {"loss": loss, "hit": (logits.argmax(1) == wanted).float().mean((1, 2))}


class WeightedScript(nn.Module):
    """The same as TorchScript, which has the batch first. Its tensors have the same names."""

    def __init__(self, model):
        super().__init__()
        self.hidden, self.out = model.hidden, model.out
        self.register_buffer("weights", model.weights)

    def forward(self, x, label):
        logits = self.out(torch.tanh(self.hidden(x)))
        loss = functional.cross_entropy(logits, label, weight=self.weights, ignore_index=2,
                                        reduction="none")
        weight = torch.where(label == 2, torch.zeros_like(loss), self.weights[label])
        return {"loss": loss, "weight": weight, "hit": (logits.argmax(1) == label).float(),
                "size": logits.abs().mean(1)}


class Scalar(Body):
    """The mean over the batch, of labels as floats."""

    def __init__(self):
        super().__init__(1)

    def forward(self, x, y):
        return functional.mse_loss(super().forward(x).squeeze(1), y)


class Auto(nn.Module):
    """Learns without labels to return its input."""

    def __init__(self):
        super().__init__()
        self.into = nn.Linear(COLUMNS, 2)
        self.back = nn.Linear(2, COLUMNS)

    def forward(self, x):
        return {"loss": (self.back(torch.tanh(self.into(x))) - x).square().mean(1)}


class NoWeight(PerSample):
    """No sample has any weight, so no step has a mean."""

    def forward(self, x, label):
        loss = super().forward(x, label)
        return {"loss": loss * 0, "weight": torch.zeros_like(loss)}


class OddWeight(PerSample):
    """The first sample of the table has a weight that is no number."""

    def forward(self, x, label):
        loss = super().forward(x, label)
        return {"loss": loss, "weight": torch.where(x[:, 0] == -0.8984375, torch.nan, 1.0)}


class Negative(PerSample):
    """Refused: negative weights."""

    def forward(self, x, label):
        loss = super().forward(x, label)
        return {"loss": loss, "weight": -torch.ones_like(loss)}


class TakenName(PerSample):
    """Refused: a metric with the name of something else."""

    def forward(self, x, label):
        loss = super().forward(x, label)
        return {"loss": loss, "lr": loss}


class Matrix(Body):
    """Refused: a loss for each column."""

    def __init__(self):
        super().__init__(CLASSES)

    def forward(self, x, label):
        return super().forward(x).square() + label.unsqueeze(1)


class NotFinite(PerSample):
    """Refused: NaN from the first sample on."""

    def forward(self, x, label):
        return super().forward(x, label) + (x[:, 0] * 0 - 1).log()


class NoLoss(PerSample):
    """Refused: a dictionary without "loss"."""

    def forward(self, x, label):
        return {"cost": super().forward(x, label), "other": x.sum(1)}


class TwoLabels(PerSample):
    """Refused: labels in a shape that the data do not have."""

    def forward(self, x, label):
        return super().forward(x, label[:, 0])


class TinyForCausalLM(nn.Module):
    """Refused with token data: shifts the labels again, as transformers' models do."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(16, 8)
        self.head = nn.Linear(8, 16)

    def forward(self, input_ids, labels):
        logits = self.head(self.embed(input_ids))
        return functional.cross_entropy(logits[:, :-1].transpose(1, 2), labels[:, 1:])
