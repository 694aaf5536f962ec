"""Small models that Lockstep must train as PyTorch does. Images are (B, 1, 8, 8) in 10 classes,
sequences 8 tokens of 20."""
import torch
from torch import nn
from torch.nn import functional as F

CLASSES, TOKENS, LENGTH = 10, 20, 8


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(64, 32), nn.Linear(32, CLASSES)

    def forward(self, x):
        return self.fc2(torch.relu(self.fc1(x.flatten(1))))


class TiedLm(nn.Module):
    """One block of attention with dropout; the last layer shares the embedding's weight."""

    def __init__(self):
        super().__init__()
        self.embed, self.place = nn.Embedding(TOKENS, 16), nn.Embedding(LENGTH, 16)
        self.norm, self.qkv, self.out = nn.LayerNorm(16), nn.Linear(16, 48), nn.Linear(16, 16)
        self.head = nn.Linear(16, TOKENS, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, tokens):
        b, t = tokens.shape
        x = self.embed(tokens) + self.place(torch.arange(t, device=tokens.device))
        q, k, v = (h.view(b, t, 2, 8).transpose(1, 2) for h in self.qkv(self.norm(x)).split(16, -1))
        p = 0.1 if self.training else 0.0
        a = F.scaled_dot_product_attention(q, k, v, dropout_p=p, is_causal=True)
        return self.head(x + self.out(a.transpose(1, 2).reshape(b, t, 16)))


class Block(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(n, n, 3, padding=1, bias=False), nn.BatchNorm2d(n)
        self.conv2, self.bn2 = nn.Conv2d(n, n, 3, padding=1, bias=False), nn.BatchNorm2d(n)

    def forward(self, x):
        y = torch.relu(self.bn1(self.conv1(x)))
        return torch.relu(x + self.bn2(self.conv2(y)))


class ConvNet(nn.Module):
    """A residual network with batch norms and dropout in place."""

    def __init__(self):
        super().__init__()
        self.stem, self.bn = nn.Conv2d(1, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8)
        self.block, self.drop, self.fc = Block(8), nn.Dropout(0.2, inplace=True), nn.Linear(8, CLASSES)

    def forward(self, x):
        x = self.block(F.max_pool2d(torch.relu_(self.bn(self.stem(x))), 2))
        return self.fc(self.drop(F.adaptive_avg_pool2d(x, 1).flatten(1)))


class UNet(nn.Module):
    """Down, up and a skip; its map of classes is averaged, so that an image has one label."""

    def __init__(self):
        super().__init__()
        self.down, self.inner = nn.Conv2d(1, 8, 3, padding=1), nn.Conv2d(8, 16, 3, padding=1)
        self.up, self.merge = nn.ConvTranspose2d(16, 8, 2, 2), nn.Conv2d(16, 8, 3, padding=1)
        self.norm, self.last = nn.GroupNorm(2, 8), nn.Conv2d(8, CLASSES, 1)

    def forward(self, x):
        a = torch.relu(self.down(x))
        b = torch.relu(self.inner(F.max_pool2d(a, 2)))
        c = torch.cat([a, self.up(b)], 1)
        return self.last(F.silu(self.norm(self.merge(c)))).mean((2, 3))


class Vit(nn.Module):
    """One block of width 16 over patches of 4x4."""

    def __init__(self):
        super().__init__()
        self.patch = nn.Conv2d(1, 16, 4, 4)
        self.cls, self.place = nn.Parameter(torch.zeros(1, 1, 16)), nn.Parameter(torch.randn(1, 5, 16) * 0.02)
        self.blocks = nn.ModuleList(
            nn.TransformerEncoderLayer(16, 2, 32, 0.1, "gelu", batch_first=True, norm_first=True)
            for _ in range(1))
        self.head = nn.Linear(16, CLASSES)

    def forward(self, x):
        x = self.patch(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.cls.expand(x.shape[0], -1, -1), x], 1) + self.place
        for block in self.blocks:
            x = block(x)
        return self.head(x[:, 0])


class Regions(nn.Module):
    """A region of bfloat16, one without gradients, a buffer that is not saved, and a constant."""

    def __init__(self):
        super().__init__()
        self.conv, self.bn, self.fc = nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.Linear(144, CLASSES)
        self.register_buffer("scale", torch.full((1,), 1.25), persistent=False)

    def forward(self, x):
        x = torch.relu(self.bn(self.conv(x))) * self.scale
        with torch.no_grad():
            level = x.mean((1, 2, 3), keepdim=True)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = self.fc((x - level).flatten(1))
        return y.float() * torch.tensor(0.5)


class StochasticDepth(nn.Module):
    """Leaves its middle out at random, by sample. Evaluation needs a program of its own."""

    def __init__(self):
        super().__init__()
        self.fc1, self.mid, self.fc2 = nn.Linear(64, 16), nn.Linear(16, 16), nn.Linear(16, CLASSES)

    def forward(self, x):
        x = torch.relu(self.fc1(x.flatten(1)))
        y = torch.relu(self.mid(x))
        if self.training:
            y = y * torch.empty(x.shape[0], 1, device=x.device).bernoulli_(0.8) / 0.8
        return self.fc2(x + y)


class Counted(nn.Module):
    """An int64 buffer and a number: in PyTorch their sum is float32, not float64."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(64, CLASSES)
        self.register_buffer("steps", torch.arange(CLASSES))

    def forward(self, x):
        return self.fc(x.flatten(1)) * (self.steps + 0.5)


class SparseEmbedding(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.out = nn.Embedding(TOKENS, 8, sparse=True), nn.Linear(8, TOKENS)

    def forward(self, tokens):
        return self.out(self.embed(tokens))


class InPlaceInput(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(64, CLASSES)

    def forward(self, x):
        return self.fc(x.mul_(0.5).flatten(1))


class Strided(nn.Module):
    """A transposed linear weight, a channels-last filter and a buffer of another order."""

    def __init__(self):
        super().__init__()
        self.conv, self.fc = nn.Conv2d(1, 3, (3, 2)), nn.Linear(126, CLASSES)
        self.wide = nn.Conv2d(3, 3, (3, 2), padding="same")
        self.wide.weight = nn.Parameter(
            self.wide.weight.detach().contiguous(memory_format=torch.channels_last))
        self.fc.weight = nn.Parameter(torch.randn(126, CLASSES).mul_(0.1).t())
        self.register_buffer("tilt", torch.randn(CLASSES, 3).t())

    def forward(self, x):
        x = torch.relu(self.wide(torch.relu(self.conv(x))))
        return self.fc(x.flatten(1)) + self.tilt.mean(0)


class Named(nn.Module):
    """Gives a dictionary."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(64, CLASSES)

    def forward(self, x):
        logits = self.fc(x.flatten(1))
        return {"logits": logits, "more": (logits.mean(), [logits.sum()])}


class InAutocast(nn.Module):
    """The whole net, with a batch norm and its counter, computes in a region of bfloat16."""

    def __init__(self):
        super().__init__()
        self.conv, self.bn, self.fc = nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.Linear(144, CLASSES)

    def forward(self, x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return self.fc(torch.relu(self.bn(self.conv(x))).flatten(1))


class CounterInEval(nn.Module):
    """Counts steps in training; evaluation computes with the count."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(64, CLASSES)
        self.register_buffer("steps", torch.zeros((), dtype=torch.long))

    def forward(self, x):
        if self.training:
            self.steps += 1
            return self.fc(x.flatten(1))
        return self.fc(x.flatten(1)) * (1 + self.steps)


class Unused(nn.Module):
    """A layer that no loss depends on, a tied weight, a frozen one, and buffers that stay."""

    def __init__(self):
        super().__init__()
        self.fc, self.spare = nn.Linear(64, CLASSES), nn.Linear(CLASSES, CLASSES)
        self.first, self.second = nn.Linear(CLASSES, CLASSES), nn.Linear(CLASSES, CLASSES)
        self.second.weight = self.first.weight
        self.gain = nn.Parameter(torch.ones(CLASSES), requires_grad=False)
        self.register_buffer("table", torch.arange(CLASSES).view(2, 5))

    def forward(self, x):
        y = self.second(self.first(self.fc(x.flatten(1)))) * self.gain
        return y + self.table.flatten() + self.spare(y).detach()
