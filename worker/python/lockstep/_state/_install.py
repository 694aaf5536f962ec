"""Puts a described state into the kept objects: all of it, or nothing.

The order: names, shapes and dtypes of all tensors; the objects' text and whether it fits the kept
objects; copies of the optimizers' tensors; load_state_dict() of schedulers and all else, which may
still raise and is then taken back; at last the writes, which cannot fail.
"""

from __future__ import annotations

import ctypes
from typing import Any, Callable, Mapping, Optional

import torch
from torch import Tensor
from torch.optim import Optimizer

from ._errors import StateError
from ._modules import Modules
from ._named import NamedBuffer
from ._objects import TensorRef, decode, fill, references
from ._optimizers import DAMAGED, check_value, put_value
from ._others import came_later, copied, other_value
from ._switches import Switches
from ._tensors import copy_in_order, kind_of, refill, why_not, words_of

Entries = Mapping[tuple[str, str], Tensor]

_OBJECTS = ("optimizer", "objects")
_SCRIPT = "start the script that the run began with, or begin a new run"


class Installer:
    """One installation. The arguments are parts of Kept."""

    def __init__(self, modules: Modules, buffers: dict[str, NamedBuffer],
                 optimizers: dict[str, Optimizer], others: dict[str, Any],
                 names: dict[int, str], switches: Switches) -> None:
        self._modules = modules
        self._buffers = buffers
        self._optimizers = optimizers
        self._others = others
        self._names = names
        self._switches = switches
        self._frozen: list[str] = []
        self._modes: Optional[dict[str, list[str]]] = None  # the state does not say

    def install(self, entries: Entries) -> None:
        """Raises StateError before it changes anything."""
        self._check_tensors(entries)
        kept = self._objects(entries)
        extra = self._modules.extra_state()
        self._check_kept(kept, extra)
        self._check_references(entries, kept)
        tensors = _copies(entries, kept, self._modules.device)
        kept = {name: fill(value, lambda ref: tensors[ref.name]) for name, value in kept.items()}
        self._load(kept, extra)
        if self._modes is not None:
            self._modules.set_modes(self._modes)
        self._switches.freeze(self._frozen)
        for name, parameter in self._modules.parameters.items():
            refill(parameter, entries["parameter", name])
        for name, buffer in self._buffers.items():
            buffer.set(entries["buffer", name])
        for name, optimizer in self._optimizers.items():
            put_value(optimizer, kept[name], self._names)

    def _check_tensors(self, entries: Entries) -> None:
        """Names, shapes and dtypes of parameters and buffers."""
        expected: dict[tuple[str, str], Tensor] = {
            ("parameter", name): p for name, p in self._modules.parameters.items()}
        expected.update({("buffer", name): b.get() for name, b in self._buffers.items()})
        for key in entries:
            if key[0] != "optimizer" and key not in expected:
                raise StateError(f"the {key[0]} `{key[1]}`", "the script has none of this name",
                                 _SCRIPT)
        for (section, name), ours in expected.items():
            where, theirs = f"the {section} `{name}`", entries.get((section, name))
            if theirs is None:
                raise StateError(where, "the state has none of this name", _SCRIPT)
            if theirs.shape != ours.shape or theirs.dtype != ours.dtype:
                raise StateError(
                    where, f"the state has {words_of(kind_of(theirs))}, the script "
                    f"{words_of(kind_of(ours))}", _SCRIPT)
        for (section, name), tensor in entries.items():
            why = why_not(tensor)
            if why:
                raise StateError(f"the {section} `{name}`", f"it is {why.partition('; ')[0]}",
                                 DAMAGED)

    def _objects(self, entries: Entries) -> dict[str, Any]:
        """The decoded objects, by the names of run.keep()."""
        text = entries.get(_OBJECTS)
        if text is None or text.dtype != torch.uint8 or text.dim() != 1:
            raise StateError("`objects` of the state", "there is none, of dtype U8", DAMAGED)
        root = decode(_bytes(text), "`objects` of the state")
        if type(root) is not dict or set(root) - {"modes", "frozen"} != {"classes", "kept", "version"}:
            raise StateError("`objects` of the state", "it has no version and objects", DAMAGED)
        if root["version"] != 1 or type(root["version"]) is not int:
            raise StateError("`objects` of the state", f"it has version {root['version']!s:.20}",
                             "use the version of Lockstep that wrote it")
        classes, kept = root["classes"], root["kept"]
        if type(classes) is not dict or type(kept) is not dict:
            raise StateError("`objects` of the state", "it lists no objects", DAMAGED)
        for name, other in self._others.items():
            if name not in classes and name not in kept and came_later(other):
                classes[name], kept[name] = type(other).__qualname__, other.state_of_before()
        self._check_classes(classes)
        self._modes = self._checked_modes(root.get("modes"))
        self._frozen = root.get("frozen", [])
        if not self._switches.can_freeze(self._frozen):
            raise StateError("`frozen` of the state", "they are not trained parameters of the script",
                             _SCRIPT)
        return kept

    def _checked_modes(self, modes: Any) -> Optional[dict[str, list[str]]]:
        """Earlier versions wrote none."""
        if modes is None:
            return None
        ours = self._modules.paths()
        if type(modes) is not dict or set(modes) != set(ours) or not all(
                type(paths) is list and all(type(path) is str for path in paths)
                for paths in modes.values()):
            raise StateError("`modes` of the state", "they are not those of the kept modules", DAMAGED)
        for kept, paths in modes.items():
            for path in paths:
                if path not in ours[kept]:
                    raise StateError(f"`{kept}`", f"the state says whether its module `{path:.80}` is "
                                     "in train() or eval(), and the script has none", _SCRIPT)
        return modes

    def _check_references(self, entries: Entries, kept: dict[str, Any]) -> None:
        """Checks that each of the optimizers' tensors is there, and that something refers to it."""
        named: dict[str, TensorRef] = {}
        for ref in references(kept):
            if named.setdefault(ref.name, ref) != ref:
                raise StateError(f"`{ref.name!s:.80}` in the state", "it has two orders", DAMAGED)
        there = {name for section, name in entries if section == "optimizer"} - {"objects"}
        for name in sorted(there ^ set(named)):
            what = "no object refers to it" if name in there else "the tensor is missing"
            raise StateError(f"`{name!s:.80}` in the state", what, DAMAGED)

    def _check_classes(self, classes: dict[str, Any]) -> None:
        ours = {name: type(o).__qualname__ for name, o in
                [*self._optimizers.items(), *self._others.items()]}
        for name in sorted(ours.keys() | classes.keys()):
            a, b = classes.get(name), ours.get(name)
            if a != b:
                raise StateError(
                    f"run.keep({name!s:.80}=…)",
                    f"the state has {_a(a)}, the script {_a(b)}", _SCRIPT)

    def _check_kept(self, kept: dict[str, Any], extra: dict[str, dict[str, Any]]) -> None:
        expected = self._optimizers.keys() | self._others.keys() | extra.keys()
        for name in sorted(kept.keys() ^ expected):
            raise StateError(f"run.keep({name!s:.80}=…)",
                             "the state has it and the script has not" if name in kept
                             else "the script has it and the state has not", _SCRIPT)
        for name, optimizer in self._optimizers.items():
            check_value(name, optimizer, kept[name], self._names)
        for name, values in extra.items():
            if type(kept[name]) is not dict or kept[name].keys() != values.keys():
                raise StateError(f"the extra state of `{name}`",
                                 "it is of other modules than the script has", _SCRIPT)

    def _load(self, kept: dict[str, Any], extra: dict[str, dict[str, Any]]) -> None:
        """load_state_dict() and set_extra_state(); takes all back if one raises."""
        steps: list[tuple[str, Callable[[Any], Any], Any, Any]] = [
            (name, other.load_state_dict, kept[name], copied(other_value(other)))
            for name, other in self._others.items()]
        if extra:
            new = {name: kept[name] for name in extra}
            steps.append(("the extra state of modules", self._modules.set_extra_state, new,
                          copied(extra)))
        for i, (name, load, value, _) in enumerate(steps):
            try:
                load(value)
            except Exception as error:
                for _, undo, _, old in steps[:i + 1]:
                    undo(old)
                raise StateError(name, f"it does not take its state ({type(error).__name__}: "
                                 f"{str(error)[:200]})", _SCRIPT) from error


def _copies(entries: Entries, kept: dict[str, Any], device: torch.device) -> dict[str, Tensor]:
    """Copies of the tensors that `kept` refers to, in their memory order and on their devices.
    `device`: where the run computes."""
    return {
        ref.name: copy_in_order(entries["optimizer", ref.name], ref.order, f"`{ref.name}`").to(
            device if ref.is_on_device else "cpu")
        for ref in references(kept)
    }


def _a(name: Any) -> str:
    return "none" if name is None else f"a {name!s:.80}"


def _bytes(tensor: Tensor) -> bytes:
    if tensor.numel() == 0:
        return b""
    tensor = tensor.contiguous()
    return ctypes.string_at(tensor.data_ptr(), tensor.numel())
