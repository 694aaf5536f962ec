"""Models and steps for the tests of a script's state."""

from __future__ import annotations

from typing import Any, Callable

import torch
from torch import nn, optim
from torch.optim import lr_scheduler

from lockstep._state import Kept


torch.set_num_threads(1)


class Tied(nn.Module):
    """Statistics, a counter, tied weights, a frozen parameter, a buffer that is rebound."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 6, 3)
        self.norm = nn.BatchNorm2d(6)
        self.embed = nn.Linear(6, 5, bias=False)
        self.head = nn.Linear(6, 5, bias=False)
        self.head.weight = self.embed.weight
        self.scale = nn.Parameter(torch.ones(5), requires_grad=False)
        self.register_buffer("seen", torch.zeros(5, 2).t())
        self.register_buffer("cache", torch.zeros(1), persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.norm(torch.relu(self.conv(x))).mean((2, 3))
        self.seen = self.seen + x.detach().abs().sum().float()
        return (self.head(x) - self.embed(x) * 0.5) * self.scale


class Plain(nn.Module):
    """Two layers, for any dtype."""

    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Linear(7, 11)
        self.b = nn.Linear(11, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.b(torch.tanh(self.a(x)))


def batch(step: int, shape: tuple[int, ...], dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """The inputs of a step."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(step)).to(dtype)


def kept(**more: Any) -> Kept:
    """A kept Plain with SGD, and what the test adds."""
    result = Kept()
    model = more.pop("model", None) or Plain()
    optimizer = more.pop("optimizer", None) or optim.SGD(model.parameters(), 0.1, 0.9)
    result.keep(model=model, optimizer=optimizer, **more)
    return result


def lambdas(optimizer: optim.Optimizer, power: float = 0.5) -> Any:
    """A schedule of a function that is made for it."""
    return lr_scheduler.LambdaLR(optimizer, lambda step: (1 + step) ** -power)


class Training:
    """Objects of a script, kept, and its apply. `make(training)` sets what it wants to keep."""

    def __init__(self, make: Callable[["Training"], dict[str, Any]], seed: int = 1) -> None:
        torch.manual_seed(seed)
        self.kept = Kept()
        self.objects = make(self)
        self.kept.keep(**self.objects)

    def run(self, steps: range, shape: tuple[int, ...] = (4, 7),
            dtype: torch.dtype = torch.float32) -> None:
        """Trains."""
        model, optimizer = self.objects["model"], self.objects["optimizer"]
        scheduler, scaler = self.objects.get("scheduler"), self.objects.get("scaler")
        for step in steps:
            loss = model(batch(step, shape, dtype)).float().square().mean()
            with self.kept.scaling():
                (scaler.scale(loss) if scaler else loss).backward()
            with self.kept.applying():
                if scaler:
                    with self.kept.scaling():
                        scaler.step(optimizer)
                        scaler.update()
                else:
                    optimizer.step()
                if isinstance(scheduler, torch.optim.lr_scheduler.ReduceLROnPlateau):
                    scheduler.step(1.0 + (step % 3))
                elif scheduler:
                    with self.kept.pacing():
                        scheduler.step()
                if "ema" in self.objects:
                    self.objects["ema"].update_parameters(model)
            optimizer.zero_grad()

    def state(self) -> dict[tuple[str, str], torch.Tensor]:
        """A description, as install() takes it, that later steps do not change."""
        return {(e.section, e.name): e.tensor.clone() for e in self.kept.describe()}


def bits(state: dict[tuple[str, str], torch.Tensor]) -> dict[tuple[str, str], Any]:
    """Names, shapes, dtypes and bytes, in order, for comparing."""
    return {key: (t.dtype, tuple(t.shape), t.reshape(-1).view(torch.uint8).numpy().tobytes()
                  if t.numel() else b"") for key, t in state.items()}
