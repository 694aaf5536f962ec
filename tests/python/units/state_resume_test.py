"""A process that installs a state continues bit for bit like the one that described it."""

from __future__ import annotations

import math
import unittest
import warnings
from typing import Any, Callable

import torch
from torch import nn, optim
from torch.optim import lr_scheduler, swa_utils

from lockstep._state import Kept

from state_models import Plain, Tied, Training, bits

OPTIMIZERS: dict[str, Callable[[Any], optim.Optimizer]] = {
    "sgd": lambda p: optim.SGD(p, lr=0.1),
    "sgd momentum": lambda p: optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=1e-3),
    "sgd nesterov foreach": lambda p: optim.SGD(p, 0.1, 0.9, nesterov=True, foreach=True),
    "sgd fused": lambda p: optim.SGD(p, 0.1, 0.9, fused=True),
    "adam": lambda p: optim.Adam(p, lr=1e-2),
    "adam tensor lr": lambda p: optim.Adam(p, lr=torch.tensor(1e-2), foreach=False),
    "adam fused": lambda p: optim.Adam(p, lr=1e-2, fused=True),
    "adamw amsgrad": lambda p: optim.AdamW(p, lr=1e-2, amsgrad=True),
    "adamw foreach maximize": lambda p: optim.AdamW(p, lr=1e-3, foreach=True, maximize=True),
    "adagrad": lambda p: optim.Adagrad(p, lr=1e-2, lr_decay=1e-2),
    "adagrad fused": lambda p: optim.Adagrad(p, lr=1e-2, fused=True),
    "rmsprop": lambda p: optim.RMSprop(p, lr=1e-3),
    "rmsprop centered": lambda p: optim.RMSprop(p, lr=1e-3, momentum=0.5, centered=True),
    "adadelta": lambda p: optim.Adadelta(p, lr=0.5),
    "rprop": lambda p: optim.Rprop(p, lr=1e-2),
    "nadam": lambda p: optim.NAdam(p, lr=1e-2, decoupled_weight_decay=True),
    "radam": lambda p: optim.RAdam(p, lr=1e-2),
    "adamax": lambda p: optim.Adamax(p, lr=1e-2),
    "asgd": lambda p: optim.ASGD(p, lr=1e-2, t0=2),
    "adafactor": lambda p: optim.Adafactor(p, lr=1e-2),
    "groups": lambda p: optim.AdamW([{"params": list(p)[:2], "lr": 1e-3, "betas": (0.8, 0.9)},
                                     {"params": list(p)[2:]}], lr=1e-2),
    "own": lambda p: Own(p),
}


class Own(optim.Optimizer):
    """State of all kinds: numbers, a shared tensor, tensors in a list, some of no parameter."""

    def __init__(self, params: Any) -> None:
        super().__init__(params, {"lr": 0.05, "history": [0.0]})
        self.shared = torch.zeros(())

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:
        self.state["total"] = self.state.get("total", 0) + 1
        for group in self.param_groups:
            group["history"] = [*group["history"][-2:], group["lr"] / self.state["total"]]
            for p in group["params"]:
                state = self.state[p]
                if not state:
                    state.update(n=0, past=[torch.zeros_like(p), torch.zeros_like(p)],
                                 clock=self.shared)
                state["n"] += 1
                state["clock"].add_(1)  # once a parameter: it must stay one tensor
                state["past"] = [state["past"][1], p.grad.clone()]
                p.sub_(sum(state["past"]) * (group["lr"] * state["n"] / (1 + state["clock"])))


def one_cycle(o: optim.Optimizer) -> Any:
    return lr_scheduler.OneCycleLR(o, max_lr=0.1, total_steps=40)


class Older(lr_scheduler.LRScheduler):
    """Like some schedulers of older versions of torch: a function stands in state_dict()."""

    __module__ = "torch.optim.lr_scheduler"

    def __init__(self, optimizer: optim.Optimizer) -> None:
        self.function = math.cos
        super().__init__(optimizer)

    def get_lr(self) -> Any:
        return [self.function(self.last_epoch / 9) * lr for lr in self.base_lrs]


SCHEDULERS: dict[str, Callable[[optim.Optimizer], Any]] = {
    "step": lambda o: lr_scheduler.StepLR(o, 2, 0.5),
    "multi step": lambda o: lr_scheduler.MultiStepLR(o, [2, 4, 4, 6], 0.5),
    "cosine": lambda o: lr_scheduler.CosineAnnealingLR(o, 9),
    "warm restarts": lambda o: lr_scheduler.CosineAnnealingWarmRestarts(o, 3, 2),
    "sequential": lambda o: lr_scheduler.SequentialLR(
        o, [lr_scheduler.LinearLR(o, 0.1, total_iters=4), lr_scheduler.ExponentialLR(o, 0.9)], [4]),
    "chained": lambda o: lr_scheduler.ChainedScheduler(
        [lr_scheduler.ConstantLR(o, 0.5, 3), lr_scheduler.ExponentialLR(o, 0.9)]),
    "one cycle": one_cycle,
    "sequential of one cycle": lambda o: lr_scheduler.SequentialLR(
        o, [lr_scheduler.LinearLR(o, 0.1, total_iters=4), one_cycle(o)], [4]),
    "cyclic": lambda o: lr_scheduler.CyclicLR(o, 1e-3, 0.1, step_size_up=3),
    "cyclic of a function": lambda o: lr_scheduler.CyclicLR(
        o, 1e-3, 0.1, step_size_up=3, scale_fn=lambda x: 0.9 ** x),
    "plateau": lambda o: lr_scheduler.ReduceLROnPlateau(o, patience=1),
    "lambda": lambda o: lr_scheduler.LambdaLR(o, lambda step: 1 / (1 + step)),
    "swa": lambda o: swa_utils.SWALR(o, swa_lr=0.01, anneal_epochs=5),
    "older": Older,
    "polynomial": lambda o: lr_scheduler.PolynomialLR(o, 12),
}


class ResumeTest(unittest.TestCase):
    """Steps 0..4, describe, install into fresh objects, steps 5..9: as without the break."""

    def continues(self, make: Callable[[Training], dict[str, Any]], **how: Any) -> Training:
        """Compares also the tensors' memory order, and a fresh process with one that goes back."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            first = Training(make)
            first.run(range(5), **how)
            state = first.state()
            back = Training(make, seed=2)
            back.run(range(2), **how)
            fresh = Training(make, seed=3)
            for other in (back, fresh):
                other.kept.install({k: t.clone() for k, t in state.items()})
                self.assertEqual(bits(state), bits(other.state()))
            for training in (first, back, fresh):
                training.run(range(5, 10), **how)
        end = bits(first.state())
        self.assertNotEqual(end, bits(state))
        for other in (back, fresh):
            self.assertEqual(list(end), list(bits(other.state())))
            self.assertEqual(end, bits(other.state()))
        return fresh

    def test_every_optimizer_in_both_precisions(self) -> None:
        for name, make_optimizer in OPTIMIZERS.items():
            for dtype in (torch.float32, torch.bfloat16):
                if name == "sgd fused" and dtype == torch.bfloat16:
                    continue  # refused: state_kept_test.py

                def make(_: Training) -> dict[str, Any]:
                    model = Plain().to(dtype)
                    return {"model": model, "optimizer": make_optimizer(model.parameters())}
                with self.subTest(optimizer=name, dtype=dtype):
                    self.continues(make, dtype=dtype)

    def test_state_of_another_precision_than_the_parameters_stays_as_it_is(self) -> None:
        class Wide(Own):
            def step(self, closure: Any = None) -> None:
                for p in self.param_groups[0]["params"]:
                    state = self.state[p]
                    state.setdefault("master", p.detach().double())
                    state["master"].sub_(p.grad.double() * 0.1)
                    p.data.copy_(state["master"])

        def make(_: Training) -> dict[str, Any]:
            model = Plain().bfloat16()
            return {"model": model, "optimizer": Wide(model.parameters())}
        fresh = self.continues(make, dtype=torch.bfloat16)
        entries = {e.name: e.dtype for e in fresh.kept.describe()}
        self.assertEqual("F64", entries["master.a.weight"])
        self.assertEqual("BF16", entries["a.weight"])

    def test_every_scheduler(self) -> None:
        for name, make_scheduler in SCHEDULERS.items():
            def make(_: Training) -> dict[str, Any]:
                model = Plain()
                optimizer = optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
                return {"model": model, "optimizer": optimizer,
                        "scheduler": make_scheduler(optimizer)}
            with self.subTest(scheduler=name):
                self.continues(make)

    def test_scheduler_with_a_learning_rate_that_is_a_tensor(self) -> None:
        def make(_: Training) -> dict[str, Any]:
            model = Plain()
            optimizer = optim.Adam([{"params": [p]} for p in model.parameters()],
                                   lr=torch.tensor(0.01), foreach=False)
            return {"model": model, "optimizer": optimizer, "scheduler": one_cycle(optimizer)}
        self.continues(make)

    def test_scaler_that_skips_and_grows(self) -> None:
        def make(_: Training) -> dict[str, Any]:
            model = Plain()
            return {"model": model, "optimizer": optim.Adam(model.parameters(), 0.01),
                    "scaler": torch.amp.GradScaler("cpu", init_scale=2.0 ** 126,
                                                   growth_interval=3)}
        fresh = self.continues(make)
        self.assertNotEqual(2.0 ** 126, fresh.objects["scaler"].get_scale())

    def test_statistics_tied_weights_and_rebound_buffers_in_channels_last(self) -> None:
        def make(_: Training) -> dict[str, Any]:
            model = Tied().to(memory_format=torch.channels_last)
            trained = [p for p in model.parameters() if p.requires_grad]
            return {"model": model, "optimizer": optim.AdamW(trained, 0.01),
                    "ema": swa_utils.AveragedModel(
                        model, use_buffers=False,
                        multi_avg_fn=swa_utils.get_ema_multi_avg_fn(0.9))}
        fresh = self.continues(make, shape=(4, 3, 6, 6))
        model, optimizer = fresh.objects["model"], fresh.objects["optimizer"]
        self.assertEqual(10, int(model.norm.num_batches_tracked))
        self.assertEqual(10, int(fresh.objects["ema"].n_averaged))
        self.assertIs(model.head.weight, model.embed.weight)
        moment = optimizer.state[model.conv.weight]["exp_avg"]
        self.assertEqual(model.conv.weight.stride(), moment.stride())
        self.assertFalse(moment.is_contiguous())
        entry = next(e for e in fresh.kept.describe() if e.name == "conv.weight")
        self.assertTrue(entry.tensor.is_contiguous() and entry.shape == (6, 3, 3, 3))
        self.assertTrue(torch.equal(entry.tensor, model.conv.weight))

    def test_averages_of_weights_and_buffers(self) -> None:
        def make(_: Training) -> dict[str, Any]:
            model = Plain()
            return {"model": model, "optimizer": optim.SGD(model.parameters(), 0.1),
                    "ema": swa_utils.AveragedModel(model)}
        fresh = self.continues(make)
        names = [p.name for p in fresh.kept.frozen]
        self.assertEqual(["ema.module.a.weight", "ema.module.a.bias", "ema.module.b.weight",
                          "ema.module.b.bias"], names)

    def test_two_optimizers_with_modules_of_their_own(self) -> None:
        def make(training: Training) -> dict[str, Any]:
            model, critic = Plain(), nn.Linear(3, 1)
            second = optim.Adam(critic.parameters(), 0.01)
            optimizer = optim.Adam(model.parameters(), 0.01)
            optimizer.register_step_post_hook(lambda *_: (second.step(), second.zero_grad()))
            model.register_forward_hook(lambda m, i, out: out * critic(out))
            return {"model": model, "critic": critic, "optimizer": optimizer, "second": second}
        fresh = self.continues(make)
        names = {e.name for e in fresh.kept.describe()}
        self.assertLessEqual({"exp_avg.a.weight", "second.exp_avg.critic.weight", "critic.weight"},
                             names)
        self.assertEqual("critic.weight", fresh.kept.parameters[4].name)

    def test_module_and_object_with_a_state_of_their_own(self) -> None:
        class Counting(Plain):
            calls = 0

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                self.calls += 1
                return super().forward(x) * (1 + 1 / self.calls)

            def get_extra_state(self) -> Any:
                return {"calls": self.calls}

            def set_extra_state(self, state: Any) -> None:
                self.calls = state["calls"]

        class Tracker:
            def __init__(self) -> None:
                self.values, self.tensor = {3: "x", 1: "y"}, torch.zeros(2)

            def state_dict(self) -> Any:
                return {"values": self.values, "tensor": self.tensor}

            def load_state_dict(self, state: Any) -> None:
                self.values, self.tensor = state["values"], state["tensor"]

        def make(_: Training) -> dict[str, Any]:
            model, tracker = Counting(), Tracker()
            optimizer = optim.SGD(model.parameters(), 0.1)

            def note(*_: Any) -> None:
                tracker.values[len(tracker.values)] = (1.5, None, float("inf"))
                tracker.tensor += 1
            optimizer.register_step_post_hook(note)
            return {"model": model, "optimizer": optimizer, "tracker": tracker}
        fresh = self.continues(make)
        self.assertEqual(10, fresh.objects["model"].calls)
        self.assertEqual(10.0, float(fresh.objects["tracker"].tensor[0]))

    def test_compiled_model_has_the_names_of_the_plain_one(self) -> None:
        plain, compiled = Kept(), Kept()
        for kept, wrap in ((plain, lambda m: m), (compiled, torch.compile)):
            model = Plain()
            model.a = wrap(model.a)
            model = wrap(model)
            kept.keep(model=model, optimizer=optim.SGD(model.parameters(), 0.1))
        self.assertEqual([p.name for p in plain.parameters], [p.name for p in compiled.parameters])
        compiled.modules["model"].eval()
        plain.install({(e.section, e.name): e.tensor for e in compiled.describe()})
        self.assertFalse(plain.modules["model"].a.training)


if __name__ == "__main__":
    unittest.main()
