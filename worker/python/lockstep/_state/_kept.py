"""The objects that run.keep() was given: the state of a run between two steps.

    kept = Kept()
    kept.keep(model=model, optimizer=optimizer, scheduler=scheduler)
    entries = kept.describe()                          # of all tensors, and one of all else
    kept.install({(e.section, e.name): e.tensor for e in entries})   # in another process, too

A process that installed a state continues bit for bit like the one that described it. Parameters
and buffers have the names that the model gives them. A tensor of the first optimizer has a name
like "exp_avg.fc.weight", one of a further optimizer kept as `d` "d.exp_avg.fc.weight". Everything
else is one entry "objects" of the section "optimizer": canonical JSON in U8 (_objects.py).

INVARIANTS
 K1 describe() depends on the state alone: processes that agree describe the same bytes.
 K2 install() checks everything before it writes; if it raises StateError, nothing has changed.
 K3 Names, shapes and dtypes of parameters, and the groups of optimizers, are fixed by keep().

Main thread only.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import Any, Callable, Iterable, Iterator, Mapping, Optional

import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler, ReduceLROnPlateau

from . import _identity
from ._errors import MisuseError, StateError
from ._fixed import Layout, ReadOnly
from ._guard import Guard
from ._hash import hash_of
from ._install import Installer
from ._modules import Modules, averages
from ._named import NamedBuffer, NamedParameter
from ._objects import encode
from ._others import Collector, came_later, other_value
from ._optimizers import check_optimizer, value_of
from ._switches import Switches
from ._tensors import Entry, entry

_FUNCTIONS = ("update", "after_step")
_BY_EPOCH, _BY_SCRIPT = "epoch_scheduler", "own_scheduler"  # what names of schedulers begin with


class Kept:
    """The objects that a script gave to run.keep(), as one state."""

    def __init__(self) -> None:
        self.modules: dict[str, nn.Module] = {}
        self.optimizers: dict[str, Optimizer] = {}
        self.schedulers: dict[str, Any] = {}
        self.others: dict[str, Any] = {}  # schedulers, scalers, all else with state_dict()
        self.scaler: Any = None  # the GradScaler among them that is enabled
        self.update: Optional[Callable[..., Any]] = None
        self.after_step: Optional[Callable[..., Any]] = None
        self.parameters: list[NamedParameter] = []  # get gradients; order of registration
        self.frozen: list[NamedParameter] = []  # get none: requires_grad=False, averages
        self.buffers: list[NamedBuffer] = []
        self._tensors: Optional[Modules] = None
        self._guard: Optional[Guard] = None
        self._read_only: Optional[ReadOnly] = None
        self._fixed: Optional[Layout] = None
        self._names: dict[int, str] = {}
        self._included: set[str] = set()
        self._identity: Optional[list[tuple[str, str]]] = None
        self._switches: Optional[Switches] = None

    def keep(self, **objects: Any) -> None:
        """Keeps `model`, at least one optimizer (or `update=fn`), and all else that has a state.

        Takes schedulers, scalers, averages, further modules, and any object with state_dict() and
        load_state_dict(). Leaves out objects that are None. Raises MisuseError, and keeps nothing,
        if it cannot keep an object.
        """
        if self._tensors is not None:
            raise MisuseError("run.keep() was called before: give it all objects in one call.")
        sorted_out = Kept()
        sorted_out._sort(objects)
        sorted_out._take_tensors()
        try:
            sorted_out._objects(Collector(sorted_out._names))
        except StateError as error:
            raise MisuseError(f"run.keep() cannot keep {error}.") from None
        self.__dict__.update(sorted_out.__dict__)

    def trained(self) -> Iterator[tuple[str, Tensor]]:
        """Parameters that get gradients, by name."""
        return ((p.name, p.tensor) for p in self.parameters)

    def untrained(self) -> Iterator[tuple[str, Tensor]]:
        """Frozen parameters, averages and buffers, by name."""
        yield from ((p.name, p.tensor) for p in self.frozen)
        yield from ((b.name, b.get()) for b in self.buffers)

    def holds(self) -> set[int]:
        """Addresses of the memory in the states of kept objects that are no modules."""
        collector = Collector(self._names)
        self._objects(collector)
        return {tensor.untyped_storage().data_ptr() for tensor in collector.tensors.values()
                if tensor.layout is torch.strided}

    def include_buffers(self, names: Iterable[str]) -> None:
        """Includes non-persistent buffers that a slot changes in the state."""
        for name in names:
            if name not in self._layout().buffers:
                raise MisuseError(f"The model has no buffer `{name}` at run.keep().")
            self._included.add(name)

    def describe(self) -> list[Entry]:
        """Every tensor of the state: parameters, buffers, the optimizers' tensors, "objects".

        Contiguous tensors are the live ones, others are copies. Valid until the next call, and
        until the state changes. Raises StateError, or MisuseError if the model changed its layout.
        """
        self._layout().check()
        collector = Collector(self._names)
        text = self._objects(collector)
        entries = [entry(name, "parameter", p) for name, p in self._layout().parameters.items()]
        entries += [entry(b.name, "buffer", b.get()) for b in self.buffers if self._is_state(b)]
        entries += [entry(name, "optimizer", t) for name, t in sorted(collector.tensors.items())]
        objects = torch.frombuffer(bytearray(text), dtype=torch.uint8)
        return [*entries, entry("objects", "optimizer", objects)]

    def hash(self) -> str:
        """A hash of every value, including buffers that no checkpoint has. Processes with the same
        values have the same hash."""
        return hash_of(self.describe(), self.buffers)

    def install(self, entries: Mapping[tuple[str, str], Tensor]) -> None:
        """Replaces the state by `entries`, by (section, name); copies their tensors.

        All or nothing: raises StateError before the first write. Works in a process whose optimizer
        has made no step, and in one that goes back, too.
        """
        self.identity()
        self._layout().check()
        buffers = {b.name: b for b in self.buffers if self._is_state(b)}
        Installer(self._layout(), buffers, self.optimizers, self.others, self._names,
                  self.switches).install(entries)
        if self._guard is not None:
            self._guard.note()
        self.note()

    def identity(self) -> list[tuple[str, str]]:
        """Sorted lines that may not change in a run, of the state before its first step.

        Classes, values of groups and schedulers, names and shapes of tensors (_identity.py).
        """
        if self._identity is None:
            lines = _identity.tensor_lines("parameters", ((p.name, p.tensor)
                                                          for p in self.parameters))
            lines.update(_identity.tensor_lines("frozen", ((p.name, p.tensor)
                                                           for p in self.frozen)))
            lines.update(_identity.tensor_lines(
                "buffers", ((b.name, b.get()) for b in self.buffers if b.persistent)))
            for name, optimizer in self.optimizers.items():
                lines.update({f"keep.{k}": v for k, v in _identity.optimizer_lines(
                    name, optimizer, self._names).items()})
            for name, kept in self.others.items():
                if not came_later(kept):
                    lines.update({f"keep.{k}": v for k, v in
                                  _identity.object_lines(name, kept).items()})
            self._identity = sorted(lines.items())
        return self._identity

    def guard(self) -> Guard:
        """From now on optimizers and schedulers that step outside of applying() raise MisuseError,
        and check_body() and check_layout() compare with the present state.
        """
        self.identity()
        if self._guard is None:
            scalers = {name: kept for name, kept in self.others.items() if _is_scaler(kept)}
            own = frozenset(name for name, scheduler in self.schedulers.items()
                            if _is_by_script(name, scheduler))
            self._guard = Guard(self.optimizers, self.schedulers, scalers,
                                {id(p.tensor) for p in self.parameters}, own)
            self._read_only = ReadOnly(self.parameters, self.frozen, self.optimizers)
            self._fixed = Layout(self._layout().parameters, self.buffers, self.optimizers)
            self.switches.begin()
        return self._guard

    def remove_guard(self) -> None:
        """Optimizers and schedulers may step anywhere again."""
        if self._guard is not None:
            self._guard.remove()

    @contextmanager
    def applying(self) -> Iterator[None]:
        """The context in which optimizers and schedulers step, and weights may change."""
        with self.guard().applying():
            yield
        self.note()

    @contextmanager
    def pacing(self) -> Iterator[None]:
        """The context in which Lockstep steps the schedulers."""
        with self.guard().pacing():
            yield

    @contextmanager
    def scaling(self) -> Iterator[None]:
        """The context in which Lockstep itself calls a kept GradScaler."""
        with self.guard().scaling():
            yield

    def check_layout(self) -> None:
        """Raises MisuseError if a part of the state was added, removed, or changed in kind.
        REQUIRES: guard()."""
        self._layout().check()
        if self._fixed is not None:
            self._fixed.check()

    def remember(self) -> None:
        """Before a slot of the trial or of a check step: copies the state for check_same().
        REQUIRES: guard()."""
        if self._read_only is not None:
            self._read_only.remember(self.describe())

    def check_same(self, who: str = "The loop body") -> None:
        """Raises MisuseError if `who` has changed a bit of the state, except buffers."""
        self.check_layout()
        if self._read_only is not None:
            self._read_only.compare(self.describe(), who)

    def check_body(self) -> None:
        """Raises MisuseError if the loop body replaced a part of the model, or changed a learning
        rate, a parameter, or the mode of a module. Its cost comes on top of every slot."""
        self._layout().check()
        if self._guard is not None and self._read_only is not None:
            self._guard.check()
            self._read_only.check()
        self.switches.check()

    @property
    def switches(self) -> Switches:
        """Modes and frozen parameters. REQUIRES: keep()."""
        assert self._switches is not None
        return self._switches

    def note(self) -> None:
        """Notes the values that the loop body reads now, as the right ones."""
        if self._read_only is not None:
            self._read_only.note()
        self.switches.note()

    def _layout(self) -> Modules:
        if self._tensors is None:
            raise MisuseError("run.keep(model=…, optimizer=…) has to be called before the loop.")
        return self._tensors

    def _is_state(self, buffer: NamedBuffer) -> bool:
        return buffer.persistent or buffer.name in self._included

    def _sort(self, objects: dict[str, Any]) -> None:
        """Puts each object where its kind belongs."""
        seen: dict[int, str] = {}
        for name, kept in objects.items():
            if kept is None:
                continue
            if not name.isidentifier():
                raise MisuseError(f"run.keep() takes names of letters, digits and _, not {name!r}.")
            if id(kept) in seen:
                raise MisuseError(f"run.keep() was given one object as `{seen[id(kept)]}` and as "
                                  f"`{name}`; keep it once.")
            seen[id(kept)] = name
            if name in _FUNCTIONS:
                if not callable(kept):
                    raise MisuseError(f"run.keep({name}=…) takes a function, not a "
                                      f"{type(kept).__qualname__}.")
                setattr(self, name, kept)
            elif isinstance(kept, nn.Module):
                self.modules[name] = kept
            elif isinstance(kept, Optimizer):
                self.optimizers[name] = kept
            elif callable(getattr(kept, "state_dict", None)) and callable(
                    getattr(kept, "load_state_dict", None)):
                self.others[name] = kept
                _check_pace(name, kept)
                if isinstance(kept, LRScheduler):
                    self.schedulers[name] = kept
            else:
                raise MisuseError(
                    f"run.keep() cannot keep `{name}`, a {type(kept).__qualname__}, which has no "
                    "state_dict() and load_state_dict(); give each object by a name of its own.")
        if not self.modules:
            raise MisuseError("run.keep() needs model=, a torch.nn.Module, or modules by names of "
                              "their own.")
        if not self.optimizers and self.update is None:
            raise MisuseError("run.keep() needs an optimizer of torch.optim, or update=, "
                              "a function that changes the weights.")

    def _take_tensors(self) -> None:
        """Names the tensors, and checks that the objects belong together."""
        self._tensors = modules = Modules(self.modules)
        self._names = modules.name_of()
        stepped_inside = {id(o) for o in self.optimizers.values() if self.update is not None}
        for name, optimizer in self.optimizers.items():
            check_optimizer(name, optimizer, self._names, stepped_inside)
        for name, scheduler in self.schedulers.items():
            if not any(scheduler.optimizer is o for o in self.optimizers.values()):
                raise MisuseError(f"`{name}` belongs to an optimizer that run.keep() was not "
                                  "given; give it, too.")
        has_hidden = self.after_step is None and self.update is None and all(
            _is_scaler(kept) for kept in self.others.values())
        for name, optimizer in self.optimizers.items():
            if has_hidden and any("initial_lr" in group for group in optimizer.param_groups):
                raise MisuseError(f"`{name}` has a scheduler that run.keep() was not given; "
                                  "give it as scheduler=.")
        trained = {"model"} | {name for name, m in self.modules.items() if self._is_trained(m)}
        for name, parameter in modules.parameters.items():
            gets = parameter.requires_grad and modules.module_of[name] in trained
            (self.parameters if gets else self.frozen).append(NamedParameter(name, parameter))
        if not self.parameters:
            raise MisuseError("run.keep(model=…) has no parameter with requires_grad.")
        self.buffers = list(modules.buffers.values())
        self._switches = Switches(modules, self.parameters)
        modules.note_frozen(p.name for p in self.frozen)
        self._take_scaler()

    def _take_scaler(self) -> None:
        scalers = [name for name, kept in self.others.items()
                   if _is_scaler(kept) and kept.is_enabled()]
        if not scalers:
            return
        if len(scalers) > 1:
            raise MisuseError(f"run.keep() was given two scalers, `{scalers[0]}` and `{scalers[1]}`; "
                              "keep one, which all optimizers have in common.")
        if not self.optimizers:
            raise MisuseError(f"run.keep() cannot keep `{scalers[0]}` without an optimizer of "
                              "torch.optim, whose gradients it unscales; leave it out.")
        for p in self.parameters:
            if p.tensor.dtype == torch.float16:
                raise MisuseError(f"run.keep() cannot keep `{scalers[0]}` with `{p.name}`, which is "
                                  "float16: a GradScaler unscales no such gradients; keep the "
                                  "model in float32, and compute under torch.autocast(\"cpu\", "
                                  "torch.float16).")
        self.scaler = self.others[scalers[0]]
        # Else unscale_() fails in a process that had no slot.
        self.scaler.scale(torch.zeros((), device=self.parameters[0].tensor.device))

    def _is_trained(self, module: nn.Module) -> bool:
        """Whether a further module gets gradients: one of its parameters is in an optimizer."""
        if averages(module) or not self.optimizers:
            return not averages(module)
        updated = {id(p) for o in self.optimizers.values() for g in o.param_groups
                   for p in g["params"]}
        return any(id(p) in updated for p in module.parameters())

    def _objects(self, collector: Collector) -> bytes:
        """The canonical JSON of all that is no tensor; `collector` gets the tensors in it."""
        kept: dict[str, Any] = {}
        for name, optimizer in self.optimizers.items():
            prefix = f"{name}." if kept else ""
            kept[name] = value_of(optimizer, name, prefix, self._names, collector.preferred)
        for name, other in self.others.items():
            kept[name] = other_value(other)
        for name, extra in self._layout().extra_state().items():
            kept[name] = extra
        classes = {name: type(o).__qualname__ for name, o in
                   [*self.optimizers.items(), *self.others.items()]}
        frozen = self.switches.frozen()
        return b'{"classes":%s,%s"kept":%s,"modes":%s,"version":1}' % (
            encode(classes, ""), b'"frozen":%s,' % encode(frozen, "") if frozen else b"",
            encode(kept, "", collector), encode(self._layout().modes(), ""))


def times_due(name: str, scheduler: Any, was_applied: bool, ended_epochs: int) -> int:
    """How often Lockstep steps a kept scheduler after a step. An epoch ends with its last step,
    even if that step overflowed."""
    if _is_by_script(name, scheduler):
        return 0
    return ended_epochs if name.startswith(_BY_EPOCH) else int(was_applied)


def _is_by_script(name: str, scheduler: Any) -> bool:
    """Whether after_step=, update= or the code between two epochs steps it."""
    return name.startswith(_BY_SCRIPT) or isinstance(scheduler, ReduceLROnPlateau)


def _check_pace(name: str, kept: Any) -> None:
    if not name.startswith((_BY_EPOCH, _BY_SCRIPT)):
        return
    if not isinstance(kept, LRScheduler):
        raise MisuseError(f"run.keep({name}=…) takes a scheduler of torch, not a "
                          f"{type(kept).__qualname__}; keep it by another name.")
    if name.startswith(_BY_EPOCH) and isinstance(kept, ReduceLROnPlateau):
        raise MisuseError(f"run.keep({name}=…) takes a scheduler that steps by itself; keep a "
                          "ReduceLROnPlateau by another name, and step it in "
                          "run.keep(after_step=…), by the numbers of run.last.")


def _is_scaler(kept: Any) -> bool:
    return isinstance(kept, torch.amp.GradScaler)
