"""Models that Lockstep must refuse, each for one reason."""
import torch
from torch import nn
from torch.nn import functional as F

from models import CLASSES

LIBRARY = torch.library.Library("mylib", "DEF")
LIBRARY.define("twice(Tensor x) -> Tensor")
LIBRARY.impl("twice", lambda x: x * 2, "CompositeExplicitAutograd")
torch.library.register_fake("mylib::twice", lambda x: torch.empty_like(x), lib=LIBRARY)


class Linear(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(64, CLASSES)

    def forward(self, x):
        return self.fc(x.flatten(1))


class ForeignOperator(Linear):
    def forward(self, x):
        return torch.ops.mylib.twice(super().forward(x))


class WeightViews(nn.Module):
    """Its second weight is the first half of its first."""

    def __init__(self):
        super().__init__()
        both = torch.randn(2 * CLASSES, 64) * 0.1
        self.whole, self.part = nn.Parameter(both), nn.Parameter(both[:CLASSES])

    def forward(self, x):
        x = x.flatten(1)
        return F.linear(x, self.whole)[:, CLASSES:] + F.linear(x, self.part)


class Branches(Linear):
    def forward(self, x):
        y = super().forward(x)
        return torch.cond(y.sum() > 0, lambda v: v + 1, lambda v: v - 1, (y,))


class DoubleWeight(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(64, CLASSES).double()

    def forward(self, x):
        return self.fc(x.flatten(1).double()).float()


class WritesWeight(Linear):
    """Renormalises its embedding whenever it looks something up."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(4, CLASSES, max_norm=1.0)

    def forward(self, x):
        return super().forward(x) + self.embed((x[:, 0, 0, 0] > 0).long())


class Periodic(Linear):
    """Computes with its counter, in every hundredth step."""

    def __init__(self):
        super().__init__()
        self.register_buffer("steps", torch.zeros((), dtype=torch.long))

    def forward(self, x):
        self.steps += 1
        return super().forward(x) * torch.where(self.steps % 100 == 0, 0.5, 1.0)


class DoubleStatistics(Linear):
    """Keeps the largest value that it has seen in a buffer of float64."""

    def __init__(self):
        super().__init__()
        self.register_buffer("peak", torch.zeros((), dtype=torch.double))

    def forward(self, x):
        self.peak.copy_(torch.maximum(self.peak, x.detach().amax().double()))
        return super().forward(x) / (1 + self.peak.float())
