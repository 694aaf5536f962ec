"""Models for lockstep.export_program: images (B, 1, 8, 8) in three classes."""

from __future__ import annotations

import random
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils import checkpoint


class Base(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm = nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4)
        self.drop, self.out = nn.Dropout(0.5), nn.Linear(4, 3)

    def middle(self, x: torch.Tensor) -> torch.Tensor:
        return x

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.out(self.drop(self.middle(self.norm(self.conv(x)))).mean((2, 3)))


class WithLoss(Base):
    def forward(self, x: torch.Tensor, label: torch.Tensor,  # type: ignore[override]
                mask: torch.Tensor | None = None) -> dict[str, torch.Tensor]:
        logits = super().forward(x)
        logits = logits if mask is None else logits * mask
        return {"loss": F.cross_entropy(logits, label, reduction="none"),
                "hit": (logits.argmax(1) == label).float()}


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed, self.out = nn.Embedding(16, 8), nn.Linear(8, 16, bias=False)
        self.out.weight = self.embed.weight

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.out(self.embed(ids))


class Sign(torch.autograd.Function):
    @staticmethod
    def forward(_: Any, x: torch.Tensor) -> torch.Tensor:
        return x.sign()

    @staticmethod
    def backward(_: Any, g: torch.Tensor) -> torch.Tensor:
        return g


class Reversal(torch.autograd.Function):
    @staticmethod
    def forward(_: Any, x: torch.Tensor) -> torch.Tensor:
        return x.view_as(x)

    @staticmethod
    def backward(_: Any, g: torch.Tensor) -> torch.Tensor:
        return -g


class Clipped(torch.autograd.Function):
    """The identity for small gradients, such as an example's."""

    @staticmethod
    def forward(_: Any, x: torch.Tensor) -> torch.Tensor:
        return x.view_as(x)

    @staticmethod
    def backward(_: Any, g: torch.Tensor) -> torch.Tensor:
        return g.clamp(-1e6, 1e6)


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, g: torch.Tensor) -> torch.Tensor:
        return 2 * ctx.saved_tensors[0] * g


class Applying(Base):
    def __init__(self, function: type[torch.autograd.Function]) -> None:
        super().__init__()
        self.function = function

    def middle(self, x: torch.Tensor) -> torch.Tensor:
        return self.function.apply(x)


class WithOperators(Base):
    def middle(self, x: torch.Tensor) -> torch.Tensor:
        return Square.apply(x + (x.sign() - x).detach())


class Averaging(Base):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("seen", torch.zeros(()))

    def middle(self, x: torch.Tensor) -> torch.Tensor:
        self.seen.add_(x.shape[0])
        return x


class DoubleBuffer(Base):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("total", torch.zeros((), dtype=torch.float64))

    def middle(self, x: torch.Tensor) -> torch.Tensor:
        self.total.add_(1)
        return x


class Noise(Base):
    def middle(self, x: torch.Tensor) -> torch.Tensor:
        return x + torch.randn_like(x)


class Hooked(Base):
    def middle(self, x: torch.Tensor) -> torch.Tensor:
        if x.requires_grad:
            x.register_hook(lambda g: g * 1.0)
        return x


class HookedNode(Base):
    def middle(self, x: torch.Tensor) -> torch.Tensor:
        if x.grad_fn is not None:
            x.grad_fn.register_hook(lambda given, _: tuple(None if g is None else -g for g in given))
        return x


class LossySaving(Base):
    def middle(self, x: torch.Tensor) -> torch.Tensor:
        with torch.autograd.graph.saved_tensors_hooks(lambda t: t * 0.5, lambda t: t):
            return x.exp()


class Reentrant(Base):
    def middle(self, x: torch.Tensor) -> torch.Tensor:
        return checkpoint.checkpoint(torch.exp, x, use_reentrant=True)


class AlwaysDropout(Base):
    def middle(self, x: torch.Tensor) -> torch.Tensor:
        return F.dropout(x)


class AttentionDropout(Base):
    def middle(self, x: torch.Tensor) -> torch.Tensor:
        return F.scaled_dot_product_attention(x, x, x, dropout_p=0.1)


class Counting(Base):
    calls = 0

    def middle(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        return x * self.calls


CALLS = [0]


class CountingOutside(Base):
    def middle(self, x: torch.Tensor) -> torch.Tensor:
        CALLS[0] += 1
        return x * CALLS[0]


class LayerDrop(Base):
    def middle(self, x: torch.Tensor) -> torch.Tensor:
        return x if random.random() < 0.1 else x * 2  # noqa: S311


class Auxiliary(Base):
    def middle(self, x: torch.Tensor) -> torch.Tensor:
        self.balance = x.square().mean()
        return x


class Branching(Base):
    def middle(self, x: torch.Tensor) -> torch.Tensor:
        return x * 2 if x.sum() > 0 else x


class Fixed(Base):
    def middle(self, x: torch.Tensor) -> torch.Tensor:
        return x + torch.ones(4, 1, 1, 1)


class Even(Base):
    def middle(self, x: torch.Tensor) -> torch.Tensor:
        return x * 2 if x.shape[0] > 2 else x


class Numpy(Base):
    def middle(self, x: torch.Tensor) -> torch.Tensor:
        return x + torch.from_numpy(x.detach().numpy() * 2)


class Several(Base):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:  # type: ignore[override]
        return super().forward(x), x


class Squeezing(Base):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x)[:, :1].squeeze()


class InList(Base):
    def __init__(self) -> None:
        super().__init__()
        self.scales = [nn.Parameter(torch.ones(()))]

    def middle(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.scales[0]


class Conditional(Base):
    def middle(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cond(x.sum() > 0, lambda t: t * 2, lambda t: t * 3, (x,))


@torch.library.custom_op("lockstep_test::twice", mutates_args=())
def twice(x: torch.Tensor) -> torch.Tensor:
    return x * 2


twice.register_fake(torch.empty_like)
twice.register_autograd(lambda _, g: g * 2)


class Custom(Base):
    def middle(self, x: torch.Tensor) -> torch.Tensor:
        return twice(x)


class Forces(Base):
    """Its forward takes a gradient."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.detach().requires_grad_()
        force, = torch.autograd.grad(super().forward(x).sum(), x, create_graph=True)
        return force.flatten(1).square().sum(1, keepdim=True)
