"""What run.keep() takes and refuses, the names of the state, guards, identity, the fresh state."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
import unittest
from typing import Any

import torch
from torch import nn, optim
from torch.optim import lr_scheduler, swa_utils

from lockstep._state import Kept, MisuseError, StateError

from state_models import Plain, Tied, Training, batch, bits


def kept(**more: Any) -> Kept:
    """A kept Plain with SGD, and what the test adds."""
    result = Kept()
    model = more.pop("model", None) or Plain()
    optimizer = more.pop("optimizer", None) or optim.SGD(model.parameters(), 0.1, 0.9)
    result.keep(model=model, optimizer=optimizer, **more)
    return result


def lambdas(optimizer: optim.Optimizer, power: float = 0.5) -> Any:
    return lr_scheduler.LambdaLR(optimizer, lambda step: (1 + step) ** -power)


class KeepTest(unittest.TestCase):
    def refused(self, pattern: str, **objects: Any) -> None:
        """The message is one sentence, and a second call with other objects works."""
        result = Kept()
        with self.assertRaisesRegex(MisuseError, pattern) as caught:
            result.keep(**objects)
        self.assertRegex(str(caught.exception), r"\.\Z")
        result.keep(model=nn.Linear(1, 1), update=print)

    def test_modules_that_cannot_be_kept_are_refused_by_name(self) -> None:
        def refused(pattern: str, module: nn.Module) -> None:
            model = nn.Sequential(nn.Linear(2, 2), module)
            trained = optim.SGD(model[0].parameters(), 0.1)
            self.refused(pattern, model=model, optimizer=trained)
        refused("`1.weight`, which is not initialized .a Lazy module.", nn.LazyLinear(3))
        refused("`model.1`, a SyncBatchNorm; use BatchNorm", nn.SyncBatchNorm(3))
        refused("`model.1`, a DataParallel; keep the module inside",
                nn.DataParallel(nn.Linear(1, 1)))
        refused("`1.weight`, which is of the dtype torch.complex64",
                nn.Linear(2, 2, dtype=torch.complex64))
        refused("`1.weight`, which is on the device meta", nn.Linear(2, 2, device="meta"))
        sparse = nn.Module()
        sparse.register_buffer("graph", torch.eye(3).to_sparse())
        refused("`1.graph`, which is sparse", sparse)
        odd = nn.Module()
        odd.register_buffer("mask", torch.zeros(2, dtype=torch.uint16))
        refused("`1.mask`, which is of the dtype torch.uint16", odd)
        with torch.inference_mode():
            inferred = nn.BatchNorm1d(2)
        refused("`1.weight`, which is an inference tensor", inferred)
        wide = nn.Module()
        wide.weight = nn.Parameter(torch.ones(1).expand(3))
        refused("`1.weight`, which is an expanded tensor", wide)

    def test_a_distributed_module_is_refused_by_name(self) -> None:
        wrapped = nn.parallel.DistributedDataParallel.__new__(nn.parallel.DistributedDataParallel)
        nn.Module.__init__(wrapped)
        wrapped.module = Plain()
        self.refused("`model`, a DistributedDataParallel; keep the module inside",
                     model=wrapped, optimizer=optim.SGD(wrapped.module.parameters(), 0.1))

    def test_optimizers_that_cannot_be_kept_are_refused_by_name(self) -> None:
        model = Plain()
        self.refused("`optimizer`, a LBFGS: it computes", model=model,
                     optimizer=optim.LBFGS(model.parameters()))
        self.refused("`o`, a SparseAdam: its gradients are sparse", model=model,
                     o=optim.SparseAdam(model.parameters()))
        self.refused(r"updates a parameter of shape \(1, 2\) \(group 0, number 0\)", model=model,
                     optimizer=optim.SGD(nn.Linear(2, 1).parameters(), 0.1))
        half = Plain().bfloat16()
        self.refused("an SGD with fused=True, which PyTorch computes wrongly for torch.bfloat16",
                     model=half, optimizer=optim.SGD(half.parameters(), 0.1, 0.9, fused=True))

        class Wrapper(optim.SGD):
            def state_dict(self) -> Any:
                return {**super().state_dict(), "slow": 1}
        self.refused("a Wrapper, which keeps 'slow' beside", model=model,
                     optimizer=Wrapper(model.parameters(), 0.1))

    def test_objects_that_do_not_belong_together_are_refused(self) -> None:
        model = Plain()
        optimizer = optim.SGD(model.parameters(), 0.1)
        both = {"model": model, "optimizer": optimizer}
        self.refused("needs model=", optimizer=optimizer)
        self.refused("needs an optimizer of torch.optim, or update=", model=model)
        self.refused("`extra`, a list, which has no state_dict", extra=[1], **both)
        self.refused("takes names of letters", **{"a b": model}, **both)
        self.refused("one object as `model` and as `again`", **both, again=model)
        self.refused("update=…. takes a function, not a int", update=3, **both)
        frozen = Plain().requires_grad_(False)
        self.refused("no parameter with requires_grad", model=frozen, update=print)
        other = optim.SGD(nn.Linear(2, 1).parameters(), 0.1)
        self.refused("`scheduler` belongs to an optimizer that", scheduler=lambdas(other), **both)
        clash = nn.Sequential()
        clash.add_module("ema", nn.Linear(2, 2))
        self.refused("two tensors named `ema.weight`", model=clash, ema=nn.Linear(2, 2),
                     update=print)
        lambdas(optimizer)
        self.refused("`optimizer` has a scheduler that run.keep.. was not given", **both,
                     scaler=torch.amp.GradScaler("cpu"))
        Kept().keep(**both, after_step=print)

    def test_state_that_is_no_data_is_refused_with_its_path(self) -> None:
        class Warm(lr_scheduler.LRScheduler):
            def __init__(self, optimizer: Any) -> None:
                self.rules = [lambda step: 0.1]
                super().__init__(optimizer)

            def get_lr(self) -> Any:
                return [self.rules[0](self.last_epoch)]
        model = Plain()
        optimizer = optim.SGD(model.parameters(), 0.1)
        self.refused(r"cannot keep scheduler.rules\[0\]: a function; a state holds numbers",
                     model=model, optimizer=optimizer, scheduler=Warm(optimizer))

    def test_keep_is_called_once_and_nothing_works_before(self) -> None:
        result = Kept()
        for call in (result.describe, lambda: result.install({}), result.check_body):
            with self.assertRaisesRegex(MisuseError, "has to be called before the loop"):
                call()
        result = kept(scheduler=None)
        with self.assertRaisesRegex(MisuseError, "was called before"):
            result.keep(model=Plain(), update=print)

    def test_names(self) -> None:
        model = Tied()
        model.norm.weight.requires_grad = False
        trained = [p for p in model.parameters() if p.requires_grad]
        result = kept(model=model, optimizer=optim.Adam(trained))
        self.assertEqual(["conv.weight", "conv.bias", "norm.bias", "embed.weight"],
                         [p.name for p in result.parameters])
        self.assertIs(model.embed.weight, result.parameters[-1].tensor)
        self.assertEqual(["scale", "norm.weight"], [p.name for p in result.frozen])
        self.assertEqual(
            [("seen", True), ("cache", False), ("norm.running_mean", True),
             ("norm.running_var", True), ("norm.num_batches_tracked", True)],
            [(b.name, b.persistent) for b in result.buffers])
        self.assertNotIn("cache", [e.name for e in result.describe()])
        result.include_buffers(["cache"])
        entries = result.describe()
        self.assertIn("cache", [e.name for e in entries])
        with self.assertRaisesRegex(MisuseError, "no buffer `cash`"):
            result.include_buffers(["cash"])
        self.assertEqual(("objects", "optimizer", "U8"),
                         (entries[-1].name, entries[-1].section, entries[-1].dtype))
        for e in entries:
            self.assertTrue(e.tensor.is_contiguous() and not e.tensor.requires_grad)
            self.assertEqual(e.shape, tuple(e.tensor.shape))
        live = next(e for e in entries if e.name == "norm.bias")
        self.assertEqual(model.norm.bias.data_ptr(), live.tensor.data_ptr())

    def test_buffers_are_reached_by_name(self) -> None:
        model = Tied()
        result = kept(model=model)
        seen = next(b for b in result.buffers if b.name == "seen")
        model.seen = model.seen + 1
        self.assertIs(model.seen, seen.get())
        before = model.seen
        seen.set(torch.full((2, 5), 3.0))
        self.assertIs(before, model.seen)
        self.assertEqual(30.0, float(model.seen.sum()))
        model.seen = torch.ones(1, 1).expand(2, 5)
        seen.set(torch.full((2, 5), 4.0))
        self.assertEqual(40.0, float(model.seen.sum()))

    def test_names_of_the_optimizers_tensors_do_not_clash(self) -> None:
        class Odd(optim.SGD):
            def step(self, closure: Any = None) -> None:
                for p in self.param_groups[0]["params"]:
                    self.state[p]["m"] = torch.zeros(1)
                    self.state[p]["d.m"] = torch.zeros(2)
        model = Plain()
        further = Odd(model.parameters(), 0.1)
        result = kept(model=model, optimizer=Odd(model.parameters(), 0.1), d=further)
        with result.applying():
            result.optimizers["optimizer"].step()
            further.step()
        names = [e.name for e in result.describe() if e.section == "optimizer"]
        self.assertEqual(len(names), len(set(names)))
        self.assertIn("d.m.a.bias'", names)
        state = {(e.section, e.name): e.tensor.clone() for e in result.describe()}
        further.state[model.a.bias]["m"].fill_(7)
        result.install(state)
        self.assertEqual(0.0, float(further.state[model.a.bias]["m"]))

    def test_state_that_is_not_the_optimizers_own_is_refused_by_name(self) -> None:
        class Flat(optim.SGD):
            def step(self, closure: Any = None) -> None:
                flat = torch.zeros(400)
                for i, p in enumerate(self.param_groups[0]["params"]):
                    self.state[p]["m"] = flat[i:i + 1] if self.defaults["lr"] < 1 else p
        for lr, pattern in ((0.1, "`m.a.weight` in the state: it shares its memory with another"),
                            (1.0, "optimizer.state.a.bias.m: the parameter `a.bias` itself")):
            model = Plain()
            result = kept(model=model, optimizer=Flat(model.parameters(), lr))
            with result.applying():
                result.optimizers["optimizer"].step()
            with self.assertRaisesRegex(StateError, pattern):
                result.describe()

    def test_changes_of_the_layout_are_named(self) -> None:
        for change, pattern in (
                (lambda m: setattr(m, "a", nn.Linear(7, 11)),
                 "The parameter `model.a.weight` was replaced"),
                (lambda m: setattr(m, "c", nn.BatchNorm1d(2, affine=False)),
                 "The buffer `model.c.running_mean` was added"),
                (lambda m: setattr(m, "n", nn.BatchNorm1d(2, affine=False)),
                 "The buffer `model.n.running_mean` was replaced"),
                (lambda m: delattr(m.b, "bias"), "The parameter `model.b.bias` was removed"),
                (lambda m: m.b.bias.requires_grad_(False), "requires_grad of `b.bias`"),
                (lambda m: m.register_buffer("x", None), "The buffer `model.x` was removed"),
                (lambda m: setattr(m, "y", torch.ones(2)), "`x2` and `y` were one tensor")):
            model = Plain()
            model.n = nn.BatchNorm1d(2, affine=False)
            model.register_buffer("x", torch.zeros(1))
            model.register_buffer("x2", torch.zeros(2))
            model.register_buffer("y", model.x2)
            result = kept(model=model)
            self.assertEqual(["x", "x2"], [b.name for b in result.buffers][:2])
            result.check_body()
            result.describe()
            change(model)
            with self.assertRaisesRegex(MisuseError, pattern):
                result.describe()


class GuardTest(unittest.TestCase):
    def setUp(self) -> None:
        self.model = Plain()
        self.optimizer = optim.SGD(self.model.parameters(), 0.1)
        self.scheduler = lambdas(self.optimizer)
        self.scaler = torch.amp.GradScaler("cpu")
        self.kept = Kept()
        self.kept.keep(model=self.model, optimizer=self.optimizer, scheduler=self.scheduler,
                       scaler=self.scaler)

    def test_steps_outside_of_apply_are_refused_and_change_nothing(self) -> None:
        self.optimizer.step()
        self.kept.guard()
        self.scaler.scale(self.model(batch(0, (2, 7))).mean()).backward()
        before = bits({(e.section, e.name): e.tensor for e in self.kept.describe()})
        for call, pattern in ((self.optimizer.step, r"`optimizer.step\(\)`: delete the call"),
                              (self.scheduler.step, r"`scheduler.step\(\)`: delete the call"),
                              (lambda: self.scaler.step(self.optimizer), r"`optimizer.step\(\)`")):
            with self.assertRaisesRegex(MisuseError, "The loop body calls " + pattern):
                call()
        self.assertEqual(
            before, bits({(e.section, e.name): e.tensor for e in self.kept.describe()}))
        with self.assertRaises(ZeroDivisionError), self.kept.applying():
            self.optimizer.step()
            self.scheduler.step()
            1 / 0
        with self.assertRaises(MisuseError):
            self.optimizer.step()
        self.kept.guard().remove()
        self.optimizer.step()
        self.scheduler.step()

    def test_a_worker_without_a_slot_can_unscale(self) -> None:
        for p in self.model.parameters():
            p.grad = torch.full_like(p, 65536.0)
        with self.kept.applying():
            self.scaler.unscale_(self.optimizer)
        self.assertEqual(1.0, float(self.model.a.bias.grad[0]))

    def test_looking_at_the_state_of_an_optimizer_does_not_change_the_state(self) -> None:
        before = bits({(e.section, e.name): e.tensor for e in self.kept.describe()})
        self.assertEqual({}, self.optimizer.state[self.model.a.bias])
        self.assertEqual(
            before, bits({(e.section, e.name): e.tensor for e in self.kept.describe()}))

    def test_a_guarded_scheduler_is_what_it_was(self) -> None:
        before = self.scheduler.state_dict()
        kind = type(self.scheduler)
        self.kept.guard()
        self.assertEqual(before, self.scheduler.state_dict())
        self.assertIsInstance(self.scheduler, kind)
        self.assertEqual((kind.__name__, kind.__module__),
                         (type(self.scheduler).__name__, type(self.scheduler).__module__))
        optimizer = optim.SGD(self.model.parameters(), 0.1)
        result = kept(model=self.model, optimizer=optimizer,
                      scheduler=lr_scheduler.StepLR(optimizer, 2))
        result.guard()
        scheduler = result.schedulers["scheduler"]
        scheduler.optimizer = None
        for copied in (copy.deepcopy(scheduler), pickle.loads(pickle.dumps(scheduler))):
            self.assertIs(lr_scheduler.StepLR, type(copied))
            self.assertEqual(scheduler.state_dict(), copied.state_dict())

    def test_a_learning_rate_set_in_the_loop_body_is_named(self) -> None:
        self.kept.guard()
        with self.kept.applying():
            self.optimizer.step()
            self.scheduler.step()
        self.kept.check_body()
        self.optimizer.param_groups[0]["lr"] = 0.05
        with self.assertRaisesRegex(MisuseError, r"`optimizer.param_groups\[0\]\['lr'\]`"):
            self.kept.check_body()


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
            [sys.executable, "-c", "import state_kept_test as t; "
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
        with self.assertRaisesRegex(StateError, "nobody kept a copy"):
            training.kept.restore_fresh()
        training.kept.mark_fresh()
        self.assertTrue(training.kept.afresh())
        fresh = bits(training.state())
        training.run(range(3), shape=(4, 3, 6, 6))
        self.assertFalse(training.kept.afresh())
        training.kept.mark_fresh()  # only the first counts
        first = bits(training.state())
        self.assertNotEqual(fresh, first)
        training.kept.restore_fresh()
        self.assertTrue(training.kept.afresh())
        self.assertEqual(fresh, bits(training.state()))
        self.assertEqual(0, len(training.objects["optimizer"].state))
        training.run(range(3), shape=(4, 3, 6, 6))
        self.assertEqual(first, bits(training.state()))


if __name__ == "__main__":
    unittest.main()
