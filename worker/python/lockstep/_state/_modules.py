"""Parameters and buffers of the kept modules, by the names that the module gives them.

A further module's names begin with its own: "ema.module.weight". A compiled module has the names of
the module that it wraps: "_orig_mod." is left out.
"""

from __future__ import annotations

from typing import Any, Iterable, Iterator

import torch
from torch import Tensor, nn

from ._errors import MisuseError
from ._metrics import is_network, metric_states
from ._named import NamedBuffer, NamedParameter
from ._tensors import check_kept, overlaps_itself

_REFUSED = {
    "DistributedDataParallel": "keep the module inside; Lockstep sums the gradients",
    "DataParallel": "keep the module inside; Lockstep runs one process a device",
    "FullyShardedDataParallel": "keep the module inside; Lockstep keeps parameters whole",
    "FSDPModule": "keep a module that fully_shard() was not called on",
    "SyncBatchNorm": "use BatchNorm, whose statistics Lockstep averages over the step",
}


class Modules:
    """The tensors of the kept modules. `named`: module by name; "model" gives plain names.

    INVARIANTS
     M1 A tensor has one name, its first in the order of registration, however often it is tied.
     M2 Names are unique over `parameters` and `buffers`.
    """

    def __init__(self, named: dict[str, nn.Module]) -> None:
        self.named = {name: _unwrapped(module) for name, module in named.items()}
        self.parameters: dict[str, nn.Parameter] = {}
        self.buffers: dict[str, NamedBuffer] = {}
        self.module_of: dict[str, str] = {}  # parameter -> kept module
        self._places = self._scan()
        self._parts = [(kept, _clean(path + ".")[:-1], module) for kept, path, module in self._walk()
                       if not _is_compiled(module)]
        self._tied_buffers: list[tuple[NamedBuffer, NamedBuffer]] = []
        self._extras = [
            (kept, _clean(path), module)
            for kept, path, module in self._walk()
            if type(module).get_extra_state is not nn.Module.get_extra_state
        ]
        names: dict[int, str] = {}
        buffers: dict[int, NamedBuffer] = {}
        for kept, path, module in self._walk():
            _check_module(module, _join(kept, path))
            prefix = ("" if kept == "model" else kept + ".") + (path + "." if path else "")
            for local, parameter in module._parameters.items():
                if parameter is not None:
                    self._add(kept, _clean(prefix + local), parameter, names)
            for local, tensor in module._buffers.items():
                if tensor is not None:
                    self._add_buffer(_clean(prefix + local), module, local, tensor, buffers)
        for kept, root in self.named.items():
            for state in () if kept == "model" or is_network(root) else metric_states(kept, root):
                check_kept(state.get(), state.name)
                self._check_free(state.name)
                self.buffers[state.name] = state
        self._found_frozen: list[str] = []

    def note_frozen(self, untrained: Iterable[str]) -> None:
        """From now on check() raises if one of these that is frozen now gets requires_grad. The
        others are in no kept optimizer: they may have gradients, which Lockstep ignores."""
        self._found_frozen = [name for name in untrained if not self.parameters[name].requires_grad]

    @property
    def device(self) -> torch.device:
        """The device of all parameters."""
        return next(iter(self.parameters.values())).device

    def name_of(self) -> dict[int, str]:
        """The names of all parameters by id()."""
        return {id(p): n for n, p in self.parameters.items()}

    def extra_state(self) -> dict[str, dict[str, Any]]:
        """The values of get_extra_state(), by kept module and path."""
        found: dict[str, dict[str, Any]] = {}
        for kept, path, module in self._extras:
            found.setdefault(kept, {})[path] = module.get_extra_state()
        return found

    def set_extra_state(self, values: dict[str, dict[str, Any]]) -> None:
        """The opposite of extra_state(); `values` has the same keys."""
        for kept, path, module in self._extras:
            module.set_extra_state(values[kept][path])

    def modes(self) -> dict[str, list[str]]:
        """The modules whose mode differs from the module around them, by kept module and path. The
        outermost counts as inside of one in train()."""
        found: dict[str, list[str]] = {kept: [] for kept in self.named}
        bits: dict[tuple[str, str], bool] = {}
        for kept, path, module in self._parts:
            bits[kept, path] = module.training
            if module.training != _around(bits, kept, path):
                found[kept].append(path)
        return found

    def set_modes(self, modes: dict[str, list[str]]) -> None:
        """The opposite of modes(). Not by train(), which a module may have changed."""
        bits: dict[tuple[str, str], bool] = {}
        for kept, path, module in self._parts:
            module.training = _around(bits, kept, path) != (path in modes[kept])
            bits[kept, path] = module.training

    def paths(self) -> dict[str, set[str]]:
        """The paths of all modules, by kept module."""
        found: dict[str, set[str]] = {kept: set() for kept in self.named}
        for kept, path, _ in self._parts:
            found[kept].add(path)
        return found

    def training(self) -> list[bool]:
        """The mode of each module, for comparing."""
        return [module.training for _, _, module in self._parts]

    def mode_left(self, found: list[bool]) -> str:
        """Names, in words, a module whose mode differs from `found`, from training() before a body;
        empty: there is none."""
        for (kept, path, module), before in zip(self._parts, found):
            if module.training != before:
                left, then = ("train()", "eval()") if module.training else ("eval()", "train()")
                return f"The loop body leaves `{_join(kept, path)}` in {left} and found it in {then}"
        return ""

    def check(self) -> None:
        """Raises MisuseError, with the name, if a parameter or buffer was replaced."""
        found = self._scan()
        for place in (*self._places, *found):
            before, now = self._places.get(place), found.get(place)
            if before is not now:
                how = "removed" if now is None else "added" if before is None else "replaced"
                is_buffer = isinstance(now if before is None else before, nn.Module)
                kind = "buffer" if is_buffer else "parameter"
                name = _join(*place[:2])
                raise MisuseError(f"The {kind} `{name}.{place[2]}` was {how} after run.keep(); "
                                  "change the model before.")
        for name in self._found_frozen:
            if self.parameters[name].requires_grad:
                raise MisuseError(f"requires_grad of `{name}` was changed after run.keep(), which found "
                                  "it frozen for good; let it require gradients there, and freeze it "
                                  "afterwards, before the loop.")
        for first, second in self._tied_buffers:
            if first.get() is not second.get():
                raise MisuseError(f"The buffers `{first.name}` and `{second.name}` were one "
                                  "tensor at run.keep() and no longer are; do not tie them.")

    def _walk(self) -> Iterator[tuple[str, str, nn.Module]]:
        for kept, root in self.named.items():
            for path, module in root.named_modules():
                yield kept, path, module

    def _scan(self) -> dict[tuple[str, str, str], Any]:
        """The place of every parameter, and the module of every persistent buffer."""
        found: dict[tuple[str, str, str], Any] = {}
        for kept, path, module in self._walk():
            for local, parameter in module._parameters.items():
                if parameter is not None:
                    found[kept, path, local] = parameter
            for local, tensor in module._buffers.items():
                if tensor is not None and local not in module._non_persistent_buffers_set:
                    found[kept, path, local] = module
        return found

    def _add(self, kept: str, name: str, parameter: nn.Parameter, names: dict[int, str]) -> None:
        if id(parameter) in names:
            return
        check_kept(parameter, name)
        if overlaps_itself(parameter):
            raise MisuseError(f"run.keep() cannot keep `{name}`, which is an expanded tensor; "
                              "clone it.")
        self._check_free(name)
        names[id(parameter)] = name
        self.parameters[name] = parameter
        self.module_of[name] = kept

    def _add_buffer(self, name: str, module: nn.Module, local: str, tensor: Tensor,
                    buffers: dict[int, NamedBuffer]) -> None:
        persistent = local not in module._non_persistent_buffers_set
        buffer = NamedBuffer(name, persistent, module, local)
        first = buffers.get(id(tensor))
        if first is not None and (first.persistent or not persistent):
            if first.module is not module or first.local != local:
                self._tied_buffers.append((first, buffer))
            return
        if persistent:
            check_kept(tensor, name)
        self._check_free(name)
        self.buffers[name] = buffers[id(tensor)] = buffer

    def _check_free(self, name: str) -> None:
        if name in self.parameters or name in self.buffers:
            raise MisuseError(f"run.keep() finds two tensors named `{name}`; give the further "
                              "module another name.")


def _check_module(module: nn.Module, name: str) -> None:
    for base in type(module).__mro__:
        then = _REFUSED.get(base.__name__)
        if then and base.__module__.startswith("torch."):
            raise MisuseError(f"run.keep() cannot keep `{name}`, a {base.__name__}; {then}.")
    if isinstance(module, (nn.Embedding, nn.EmbeddingBag)) and module.max_norm is not None:
        raise MisuseError(f"run.keep() cannot keep `{name}`, an {type(module).__name__} with "
                          "max_norm=, which changes weights whenever it reads them; leave max_norm "
                          "out, and shorten them by torch.renorm() in run.keep(after_step=…).")


def _is_compiled(module: nn.Module) -> bool:
    return type(module).__name__ == "OptimizedModule"


def _unwrapped(module: nn.Module) -> nn.Module:
    return module._orig_mod if _is_compiled(module) else module


def _around(bits: dict[tuple[str, str], bool], kept: str, path: str) -> bool:
    """The mode of the module around this one."""
    return bits.get((kept, path.rpartition(".")[0]), True) if path else True


def _clean(name: str) -> str:
    return name.replace("_orig_mod.", "")


def _join(kept: str, path: str) -> str:
    return f"{kept}.{path}" if path else kept


def averages(module: nn.Module) -> bool:
    """True for modules that hold an average of another's parameters."""
    return isinstance(module, torch.optim.swa_utils.AveragedModel)
