"""Installing is all or nothing: what does not fit is refused before the first write."""

from __future__ import annotations

import json
import random
import unittest
from typing import Any, Callable

import torch
from torch import nn, optim
from torch.optim import lr_scheduler

from lockstep._state import StateError

from state_models import Plain, Training, bits

State = dict[tuple[str, str], torch.Tensor]


class Fragile:
    """Refuses a state after it took half of it."""

    def __init__(self) -> None:
        self.first, self.second = 0, [0]

    def state_dict(self) -> Any:
        return {"first": self.first, "second": self.second}

    def load_state_dict(self, state: Any) -> None:
        self.first = state["first"]
        if state["second"] != [0]:
            raise KeyError("second")
        self.second = state["second"]


class Extra(Plain):
    """A module with a state that is no tensor."""

    level = 1

    def get_extra_state(self) -> Any:
        return self.level

    def set_extra_state(self, state: Any) -> None:
        if not 0 < state < 10:
            raise ValueError("level")
        self.level = state


def make(_: Training) -> dict[str, Any]:
    model = Extra()
    model.norm = nn.BatchNorm1d(3)
    optimizer = optim.AdamW([{"params": model.a.parameters()},
                             {"params": [*model.b.parameters(), *model.norm.parameters()]}], 0.01)
    return {"model": model, "optimizer": optimizer,
            "scheduler": lr_scheduler.StepLR(optimizer, 2), "tracker": Fragile()}


def with_text(change: Callable[[Any], Any]) -> Callable[[State], None]:
    """Changes the tree of the objects' JSON."""
    def apply(state: State) -> None:
        tree = json.loads(bytes(state["optimizer", "objects"].tolist()))
        tree = change(tree) or tree
        text = json.dumps(tree, sort_keys=True, separators=(",", ":")).encode()
        state["optimizer", "objects"] = torch.frombuffer(bytearray(text), dtype=torch.uint8)
    return apply


def with_entry(section: str, name: str, tensor: Any) -> Callable[[State], None]:
    """Replaces an entry, or takes it away."""
    def apply(state: State) -> None:
        if tensor is None:
            del state[section, name]
        else:
            state[section, name] = tensor
    return apply


def put(path: list[Any], value: Any) -> Callable[[State], None]:
    """Sets a value in the objects' JSON; value None takes it away."""
    def change(tree: Any) -> None:
        for key in path[:-1]:
            tree = tree[key]
        if value is None:
            del tree[path[-1]]
        else:
            tree[path[-1]] = value
    return with_text(change)


GROUP = ["kept", "optimizer", "groups", 0]
STATE = ["kept", "optimizer", "state"]
DAMAGES: list[tuple[str, Callable[[State], None]]] = [
    ("the parameter `a.weight`: the state has none", with_entry("parameter", "a.weight", None)),
    ("the parameter `z`: the script has none", with_entry("parameter", "z", torch.zeros(1))),
    ("the buffer `a.weight`: the script has none", with_entry("buffer", "a.weight",
                                                              torch.zeros(1))),
    (r"has float32 \(7, 11\), the script float32 \(11, 7\)",
     with_entry("parameter", "a.weight", torch.zeros(7, 11))),
    ("has bfloat16", with_entry("parameter", "a.bias", torch.zeros(11, dtype=torch.bfloat16))),
    ("`norm.num_batches_tracked`: the state has float32",
     with_entry("buffer", "norm.num_batches_tracked", torch.zeros(()))),
    ("`exp_avg.a.bias` in the state: the tensor is missing",
     with_entry("optimizer", "exp_avg.a.bias", None)),
    ("`extra` in the state: no object refers to it",
     with_entry("optimizer", "extra", torch.zeros(1))),
    ("`step.a.bias`: it is of the dtype torch.complex64",
     with_entry("optimizer", "step.a.bias", torch.zeros(1, dtype=torch.complex64))),
    ("`objects` of the state: there is none", with_entry("optimizer", "objects", None)),
    ("`objects` of the state: there is none", with_entry("optimizer", "objects", torch.zeros(9))),
    ("`objects` of the state: no canonical JSON", with_entry(
        "optimizer", "objects", torch.zeros(9, dtype=torch.uint8))),
    ("it has no version and objects", with_text(lambda tree: [1])),
    ("it has version 2", put(["version"], 2)),
    ("it has version True", put(["version"], True)),
    ("it lists no objects", put(["kept"], [1])),
    (r"run.keep\(scheduler=…\): the state has none, the script a StepLR",
     put(["classes", "scheduler"], None)),
    ("the state has a SGD, the script a AdamW", put(["classes", "optimizer"], "SGD")),
    ("the state has a X, the script none", put(["classes", "ema"], "X")),
    ("the script has it and the state has not", put(["kept", "scheduler"], None)),
    ("the state has it and the script has not", put(["kept", "more"], 1)),
    ("no optimizer of this name", put(["kept", "optimizer"], [])),
    ("no optimizer of this name", put(["kept", "optimizer", "more"], 1)),
    ("has no groups", put(["kept", "optimizer", "groups"], 3)),
    ("the state has 1 groups of parameters, the script 2", put(GROUP, None)),
    ("it is no group", put(GROUP, {"params": []})),
    ("it is no group", put([*GROUP, "values", "params"], [])),
    ("has `a.bias` where the script has `a.weight`", put([*GROUP, "params", 0], "a.bias")),
    ("the state has 1 parameters, the script 2", put([*GROUP, "params", 1], None)),
    ("the state has no list", put([*GROUP, "params"], "a")),
    ("`a.weigh` is no parameter", put([*STATE, "a.weigh"], {})),
    ("`a.weight` is no parameter", put([*STATE, "a.weight"], 3)),
    ("is no order of 1 dimensions",
     put([*STATE, "a.bias", "exp_avg", "$r"], ["exp_avg.a.bias", [0, 0]])),
    ("has two orders", put([*STATE, "a.bias", "more"], {"$r": ["exp_avg.a.bias", [0]]})),
    ("the extra state of `model`: it is of other modules", put(["kept", "model", "b"], 1)),
    ("`modes` of the state: they are not", put(["modes"], {})),
    ("`modes` of the state: they are not", put(["modes", "model"], "norm")),
    ("`modes` of the state: they are not", put(["modes", "model"], [1])),
    ("`model`: the state says whether its module `c` is in", put(["modes", "model"], ["c"])),
    ("`frozen` of the state: they are not trained", put(["frozen"], ["a.weigh"])),
    ("`frozen` of the state: they are not trained", put(["frozen"], [1])),
    ("`frozen` of the state: they are not trained", put(["frozen"], 1)),
    (r"the extra state of modules: it does not take its state \(ValueError: level\)",
     put(["kept", "model", ""], 11)),
    (r"tracker: it does not take its state \(KeyError: 'second'\)",
     put(["kept", "tracker"], {"first": 5, "second": [7]})),
    (r"tracker: it does not take its state \(TypeError", put(["kept", "tracker"], 5)),
]


class AllOrNothingTest(unittest.TestCase):
    def setUp(self) -> None:
        self.source, self.target = Training(make), Training(make, seed=2)
        self.source.objects["tracker"].first = 3
        self.source.objects["model"].level = 5
        self.source.run(range(3))
        self.target.run(range(1))
        self.state = self.source.state()

    def test_what_does_not_fit_is_refused_and_nothing_is_written(self) -> None:
        before = bits(self.target.state())
        for pattern, damage in DAMAGES:
            with self.subTest(pattern=pattern):
                state = dict(self.state)
                damage(state)
                with self.assertRaisesRegex(StateError, pattern) as caught:
                    self.target.kept.install(state)
                self.assertRegex(str(caught.exception), r"\A[^;]+: [^;]+; [^;]+\Z")
                self.assertEqual(before, bits(self.target.state()))
        self.assertTrue(all(p.requires_grad for p in self.target.objects["model"].parameters()))
        self.target.kept.install(self.state)
        self.assertEqual(bits(self.state), bits(self.target.state()))
        self.assertEqual((3, 5), (self.target.objects["tracker"].first,
                                  self.target.objects["model"].level))

    def test_tensors_that_are_installed_are_copies(self) -> None:
        end = bits(self.state)
        self.target.kept.install(self.state)
        for tensor in self.state.values():
            tensor.zero_()
        self.assertEqual(end, bits(self.target.state()))

    def test_nothing_that_the_optimizer_had_stays_whether_it_is_a_parameters_or_not(self) -> None:
        fresh, optimizer = Training(make).state(), self.target.objects["optimizer"]
        optimizer.state["total"] = 3
        self.target.kept.install(fresh)
        self.assertEqual({}, dict(optimizer.state))
        self.assertEqual(bits(fresh), bits(self.target.state()))

    def test_each_trained_parameter_is_frozen_or_not_as_it_was(self) -> None:
        model, other = self.source.objects["model"], self.target.objects["model"]
        model.a.weight.requires_grad_(False)
        other.b.bias.requires_grad_(False)
        self.target.kept.install(self.source.state())
        self.assertEqual((False, True), (other.a.weight.requires_grad, other.b.bias.requires_grad))
        self.assertEqual(bits(self.source.state()), bits(self.target.state()))
        self.target.kept.install(self.state)  # of a step before
        self.assertTrue(all(p.requires_grad for p in other.parameters()))

    def test_each_module_gets_its_mode(self) -> None:
        def modes(training: Training) -> list[bool]:
            model = training.objects["model"]
            return [part.training for part in (model, model.a, model.b, model.norm)]
        put(["modes"], None)(self.state)  # earlier versions have none
        self.target.objects["model"].norm.eval()
        self.target.kept.install(self.state)
        self.assertEqual([True, True, True, False], modes(self.target))
        self.source.objects["model"].eval()
        self.source.objects["model"].b.train()
        state = self.source.state()
        self.assertIn(b'"modes":{"model":["","b"]}', bytes(state["optimizer", "objects"].tolist()))
        self.target.kept.install(state)
        self.assertEqual([False, False, True, False], modes(self.target))
        self.assertEqual(bits(state), bits(self.target.state()))

    def test_settings_that_a_newer_torch_adds_stay(self) -> None:
        put([*GROUP, "values", "maximize"], None)(self.state)
        put([*GROUP, "values", "from_before"], 7)(self.state)
        self.target.kept.install(self.state)
        group = self.target.objects["optimizer"].param_groups[0]
        self.assertEqual((False, 7), (group["maximize"], group["from_before"]))

    def test_any_damage_of_the_objects_is_refused_or_taken_whole(self) -> None:
        random.seed(3)
        text = bytes(self.state["optimizer", "objects"].tolist())
        before = bits(self.target.state())
        refused = 0
        for _ in range(400):
            damaged = bytearray(text)
            at = random.randrange(len(text))
            damaged[at:at + random.randint(0, 2)] = bytes(
                random.choice(b'0123456789[]{}",:$arnulx.') for _ in range(random.randint(0, 2)))
            self.state["optimizer", "objects"] = torch.frombuffer(damaged, dtype=torch.uint8)
            try:
                self.target.kept.install(self.state)
            except StateError:
                refused += 1
                self.assertEqual(before, bits(self.target.state()))
                continue
            before = bits(self.target.state())
        self.assertGreater(refused, 200)


if __name__ == "__main__":
    unittest.main()
