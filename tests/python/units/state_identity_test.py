"""The lines of a run's identity, which may not change; and the way back to the fresh state."""

from __future__ import annotations

import subprocess
import sys
import unittest
from typing import Any

import torch
from torch import nn, optim
from torch.optim import lr_scheduler, swa_utils

from state_models import Plain, Tied, Training, bits, kept, lambdas


class IdentityTest(unittest.TestCase):
    def lines(self, power: float = 0.5, **options: Any) -> dict[str, str]:
        model = Plain()
        optimizer = optim.AdamW(model.parameters(), **options)
        result = kept(model=model, optimizer=optimizer, scheduler=lambdas(optimizer, power),
                      scaler=torch.amp.GradScaler("cpu"))
        found = result.identity()
        self.assertEqual(sorted(found), found)
        self.assertEqual(len(found), len(dict(found)))
        return dict(found)

    def test_every_value_of_a_constructor_counts(self) -> None:
        first = self.lines(lr=0.1)
        self.assertEqual(first, self.lines(lr=0.1))
        self.assertEqual("0.1", first["keep.optimizer.param_groups[0]['lr']"])
        self.assertEqual("(0.9, 0.999)", first["keep.optimizer.param_groups[0]['betas']"])
        self.assertEqual(("AdamW", "LambdaLR", "65536.0"), (
            first["keep.optimizer"], first["keep.scheduler"], first["keep.scaler.scale"]))
        self.assertEqual("4 tensors, 124 values, float32", first["parameters"])

        def changed(other: dict[str, str]) -> set[str]:
            return {k for k in first.keys() | other.keys() if first.get(k) != other.get(k)}
        self.assertEqual({"keep.optimizer.param_groups[0]['eps']"},
                         changed(self.lines(lr=0.1, eps=1e-9)))
        self.assertEqual({"keep.scheduler.lr_lambdas"}, changed(self.lines(0.25, lr=0.1)))

    def test_layers_of_schedulers_functions_and_shapes_count(self) -> None:
        def lines(period: int = 5, wide: int = 3,
                  function: Any = lambda x: x) -> list[tuple[str, str]]:
            model = nn.Linear(2, wide)
            optimizer = optim.SGD(model.parameters(), 0.1, momentum=0.9)
            schedulers = [lr_scheduler.CosineAnnealingLR(optimizer, period),
                          lr_scheduler.CyclicLR(optimizer, 0.1, 0.2, scale_fn=function)]
            return kept(model=model, optimizer=optimizer, scheduler=lr_scheduler.SequentialLR(
                optimizer, schedulers, [4])).identity()
        self.assertEqual(lines(), lines())
        self.assertNotIn(" at 0x", str(lines()))
        self.assertIn(("keep.scheduler._schedulers[0].T_max", "5"), lines())
        self.assertEqual(6, len({tuple(x) for x in (
            lines(), lines(6), lines(wide=4), lines(function=lambda x: {1, 2, 3} and x),
            lines(function=lambda x: (lambda: x * 2)()),
            lines(function=lambda x: (lambda: x * 3)()))}))

    def test_many_groups_take_a_line_a_value(self) -> None:
        def lines(last: float) -> dict[str, str]:
            model = nn.Sequential(*[nn.Linear(2, 2) for _ in range(20)])
            groups = [{"params": m.parameters(), "lr": 0.1 * (i + 1)} for i, m in enumerate(model)]
            groups[-1]["lr"] = last
            optimizer = optim.SGD(groups, 0.1)
            groups = optimizer.param_groups
            groups[3]["own"] = 1
            return dict(kept(model=model, optimizer=optimizer).identity())
        self.assertEqual(lines(0.5), lines(0.5))
        self.assertEqual({"keep.optimizer.param_groups[:]['lr']"},
                         {k for k, v in lines(0.5).items() if lines(0.25)[k] != v})
        self.assertEqual(", , , 1", lines(0.5)["keep.optimizer.param_groups[:]['own']"])
        self.assertLess(len(lines(0.5)), 20)

    def test_the_identity_is_that_of_the_fresh_state(self) -> None:
        def make(_: Training) -> dict[str, Any]:
            model = Plain()
            optimizer = optim.SGD(model.parameters(), 0.1)
            return {"model": model, "optimizer": optimizer, "scheduler": lambdas(optimizer)}
        fresh, trained, resumed = Training(make), Training(make, 2), Training(make, 3)
        trained.run(range(3))
        resumed.kept.install(trained.state())
        self.assertEqual(fresh.kept.identity(), trained.kept.identity())
        self.assertEqual(fresh.kept.identity(), resumed.kept.identity())

    def test_two_processes_say_the_same(self) -> None:
        here = [str(sorted(self.lines(lr=0.1).items()))]
        there = subprocess.run(
            [sys.executable, "-c", "import state_identity_test as t; "
             "print(sorted(t.IdentityTest().lines(lr=0.1).items()))"],
            capture_output=True, text=True, check=True, cwd=__file__.rpartition("/")[0])
        self.assertEqual(here, there.stdout.splitlines())


class FreshTest(unittest.TestCase):
    def test_the_fresh_state_comes_back_after_training(self) -> None:
        def make(_: Training) -> dict[str, Any]:
            model = Tied()
            trained = [p for p in model.parameters() if p.requires_grad]
            optimizer = optim.AdamW(trained, 0.01)
            return {"model": model, "optimizer": optimizer, "scheduler": lambdas(optimizer),
                    "ema": swa_utils.AveragedModel(model)}
        training = Training(make)
        fresh = training.state()
        training.run(range(3), shape=(4, 3, 6, 6))
        first = bits(training.state())
        self.assertNotEqual(bits(fresh), first)
        training.kept.install(fresh)
        self.assertEqual(bits(fresh), bits(training.state()))
        self.assertEqual(0, len(training.objects["optimizer"].state))
        training.run(range(3), shape=(4, 3, 6, 6))
        self.assertEqual(first, bits(training.state()))


if __name__ == "__main__":
    unittest.main()
