"""Arguments that run.keep() takes or refuses, the names of the state, the guards."""

from __future__ import annotations

import copy
import pickle
import unittest
from typing import Any

import torch
from torch import nn, optim
from torch.nn.utils import clip_grad_norm_
from torch.optim import lr_scheduler

from lockstep._state import Kept, MisuseError, StateError

from state_models import Plain, Tied, batch, bits, kept, lambdas


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

    def test_scalers_that_cannot_be_kept_are_refused_by_name(self) -> None:
        model, scaler = Plain(), torch.amp.GradScaler("cpu")
        optimizer = optim.SGD(model.parameters(), 0.1)
        self.refused("two scalers, `scaler` and `other`", model=model, optimizer=optimizer,
                     scaler=scaler, other=torch.amp.GradScaler("cpu"))
        self.refused("`scaler` without an optimizer", model=model, scaler=scaler, update=print)
        model.b.half()
        self.refused("`scaler` with `b.weight`, which is float16", model=model, scaler=scaler,
                     optimizer=optim.SGD(model.parameters(), 0.1))
        Kept().keep(model=model, optimizer=optim.SGD(model.parameters(), 0.1), update=print,
                    scaler=torch.amp.GradScaler("cpu", enabled=False))

    def test_an_optimizer_whose_state_lies_in_another_one_is_refused(self) -> None:
        class Sharp(optim.SGD):
            def __init__(self, parameters: Any) -> None:
                super().__init__(parameters, 0.1)
                self.base = optim.Adam(self.param_groups)
        model = Plain()
        sharp = Sharp(model.parameters())
        self.refused("a Sharp with another optimizer in `base`", model=model, optimizer=sharp)
        self.refused("in `base`", model=model, optimizer=sharp, inner=sharp.base)
        Kept().keep(model=model, optimizer=sharp, inner=sharp.base, update=print)
        sharp.base.state = sharp.state  # as wrappers do that only look in
        Kept().keep(model=model, optimizer=sharp)

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
        with self.kept.scaling():
            self.scaler.scale(self.model(batch(0, (2, 7))).mean()).backward()
        before = bits({(e.section, e.name): e.tensor for e in self.kept.describe()})
        for call, pattern in ((self.optimizer.step, r"`optimizer.step\(\)`: delete the call"),
                              (self.scheduler.step, r"`scheduler.step\(\)`: delete the call"),
                              (lambda: self.scaler.scale(torch.ones(())), r"`scaler.scale\(\)`"),
                              (lambda: self.scaler.unscale_(self.optimizer), r"`scaler.unscale_"),
                              (lambda: self.scaler.step(self.optimizer), r"`scaler.step\(\)`"),
                              (self.scaler.update, r"`scaler.update\(\)`: delete the call"),
                              (lambda: clip_grad_norm_(self.model.parameters(), 1.0),
                               r"`clip_grad_norm_\(\)`.*run.keep\(clip_norm=…\)"),
                              (lambda: nn.utils.clip_grads_with_norm_(
                                  [self.model.a.bias], 1.0, torch.ones(())),
                               r"`clip_grads_with_norm_\(\)`"),
                              (lambda: nn.utils.clip_grad_value_(self.model.a.bias, 1.0),
                               r"`clip_grad_value_\(\)`.*run.keep\(update=…\)")):
            with self.assertRaisesRegex(MisuseError, "The loop body calls " + pattern):
                call()
        self.assertEqual(
            before, bits({(e.section, e.name): e.tensor for e in self.kept.describe()}))
        with self.assertRaises(ZeroDivisionError), self.kept.applying():
            self.optimizer.step()
            with self.kept.pacing():
                self.scheduler.step()
            with self.assertRaisesRegex(MisuseError, r"run.keep\(own_scheduler=…\) to step it yourself"):
                self.scheduler.step()
            clip_grad_norm_(self.model.parameters(), 1.0)
            1 / 0
        with self.assertRaises(MisuseError):
            self.optimizer.step()
        other = nn.Linear(1, 1)
        other.weight.grad = torch.full_like(other.weight, 8.0)
        clip_grad_norm_(other.parameters(), 1.0)
        self.assertAlmostEqual(1.0, float(other.weight.grad), 5)
        self.kept.guard().remove()
        self.optimizer.step()
        self.scheduler.step()
        self.assertTrue(clip_grad_norm_(self.model.parameters(), 1.0) > 0)
        self.assertIs(nn.utils.clip_grad_norm_, clip_grad_norm_)
        self.scaler.update(2.0)

    def test_in_update_the_gradients_are_unscaled_and_a_scaler_only_steps(self) -> None:
        for p in self.model.parameters():
            p.grad = torch.full_like(p, 65536.0)
        before = self.model.a.bias.clone()
        with self.kept.applying():
            with self.kept.scaling():
                self.scaler.unscale_(self.optimizer)
            for call in (lambda: self.scaler.unscale_(self.optimizer), self.scaler.update,
                         lambda: self.scaler.scale(before)):
                with self.assertRaisesRegex(MisuseError, r"is called in run.keep\(update=…\).*unscaled"):
                    call()
            self.scaler.step(self.optimizer)
        self.assertTrue(torch.allclose(before - 0.1, self.model.a.bias))

    def test_a_worker_without_a_slot_can_unscale(self) -> None:
        for p in self.model.parameters():
            p.grad = torch.full_like(p, 65536.0)
        with self.kept.scaling():
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
        with self.kept.applying(), self.kept.pacing():
            self.optimizer.step()
            self.scheduler.step()
        self.kept.check_body()
        self.optimizer.param_groups[0]["lr"] = 0.05
        with self.assertRaisesRegex(MisuseError, r"`optimizer.param_groups\[0\]\['lr'\]`"):
            self.kept.check_body()


if __name__ == "__main__":
    unittest.main()
