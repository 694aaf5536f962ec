"""Facts about a script that may not change in a run, as lines of key and value.

Two processes of one script give the same lines: no address, no order of a set, floats by repr().
The functions of a scheduler count by their code, defaults and closed-over scalars, not by globals
that they read.
"""

from __future__ import annotations

import functools
import hashlib
import types
from typing import Any, Iterable

import torch
from torch import Tensor
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from ._errors import StateError
from ._objects import encode, is_function
from ._optimizers import settings

Lines = dict[str, str]

_MOVES = {"optimizer", "_step_count", "last_epoch", "_last_lr", "_is_initial", "verbose",
          "_get_lr_called_within_step", "_opt_called"}
_LONGEST = 160
_GROUPS = 8  # with more, a line is of all groups: a group a layer makes thousands of lines


def tensor_lines(what: str, tensors: Iterable[tuple[str, Tensor]]) -> Lines:
    """A readable line and a hash of names, shapes and dtypes, in their order."""
    digest, count, values, dtypes = _new_hash(), 0, 0, set()
    for name, tensor in tensors:
        digest.update(f"{name} {tuple(tensor.shape)} {tensor.dtype}\n".encode())
        count, values = count + 1, values + tensor.numel()
        dtypes.add(str(tensor.dtype).removeprefix("torch."))
    text = f"{count} tensors, {values} values" + "".join(f", {d}" for d in sorted(dtypes))
    return {what: text, f"{what}.hash": digest.hexdigest()}


def optimizer_lines(name: str, optimizer: Optimizer, names: dict[int, str]) -> Lines:
    """The class, and each group's values and parameters."""
    lines = {name: type(optimizer).__qualname__}
    groups = [f"{len(group['params'])} parameters, "
              + _hash("\n".join(names[id(p)] for p in group["params"]))
              for group in optimizer.param_groups]
    values: dict[str, list[str]] = {"": groups}
    for g, key, value in settings(optimizer):
        values.setdefault(f"[{key!r}]", [""] * g).append(_text(value))
    for key, texts in values.items():
        if len(groups) > _GROUPS:
            lines[f"{name}.param_groups[:]{key}"] = _short(", ".join(texts))
            continue
        for g, text in enumerate(texts):
            lines[f"{name}.param_groups[{g}]{key}"] = text
    return lines


def object_lines(name: str, kept: Any) -> Lines:
    """The class; for schedulers and scalers also the arguments of their constructors."""
    lines = {name: type(kept).__qualname__}
    if isinstance(kept, LRScheduler):
        lines.update(_scheduler_lines(name, kept))
    elif isinstance(kept, torch.amp.GradScaler):
        for key, value in kept.state_dict().items():
            lines[f"{name}.{key}"] = _text(value)
    return lines


def _scheduler_lines(name: str, scheduler: Any) -> Lines:
    lines: Lines = {}
    for key, value in vars(scheduler).items():
        if key in _MOVES:
            continue
        parts = value if isinstance(value, (list, tuple)) else [value]
        if any(isinstance(part, LRScheduler) for part in parts):
            for i, part in enumerate(parts):
                lines.update(object_lines(f"{name}.{key}[{i}]", part))
        else:
            lines[f"{name}.{key}"] = _text(value)
    return lines


def _text(value: Any) -> str:
    if isinstance(value, float):
        return repr(float(value))
    if isinstance(value, (list, tuple)) and not all(_is_plain(v) for v in value):
        text = ", ".join(_text(v) for v in value)
    elif isinstance(value, functools.partial):
        text = f"partial {_text(value.func)} {_text(list(value.args))} {_text(value.keywords)}"
    elif is_function(value):
        text = _function_text(value)
    elif isinstance(value, Tensor):
        text = f"{value.dtype} {value.tolist()}"
    elif _is_plain(value):
        text = repr(value) if type(value) in (str, int, bool, tuple, type(None)) else _json(value)
    else:
        text = type(value).__qualname__
        if _is_plain(getattr(value, "__dict__", None)):
            text += " " + _json(vars(value))
    return _short(text)


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:80]}… {_hash(text)}"


def _json(value: Any) -> str:
    return encode(value, "").decode("ascii")


def _is_plain(value: Any) -> bool:
    try:
        encode(value, "")
    except StateError:
        return False
    return True


def _function_text(function: Any) -> str:
    function = getattr(function, "__func__", function)
    name = getattr(function, "__qualname__", type(function).__qualname__)
    code = getattr(function, "__code__", None)
    if not isinstance(code, types.CodeType):
        return name
    digest = _new_hash()
    _add_code(digest, code)
    cells = []
    for cell in function.__closure__ or ():
        try:
            cells.append(cell.cell_contents)
        except ValueError:  # not bound yet
            cells.append(None)
    for value in [function.__defaults__, function.__kwdefaults__, *cells]:
        digest.update((_json(value) if _is_plain(value) else type(value).__qualname__).encode())
    return f"{name} {digest.hexdigest()}"


def _add_code(digest: Any, code: types.CodeType) -> None:
    digest.update(code.co_code)
    digest.update(repr((code.co_names, code.co_varnames, code.co_freevars)).encode())
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            _add_code(digest, constant)
        elif isinstance(constant, frozenset):
            digest.update(repr(sorted(map(repr, constant))).encode())
        else:
            digest.update(repr(constant).encode())


def _new_hash() -> Any:
    return hashlib.blake2b(digest_size=16)


def _hash(text: str) -> str:
    digest = _new_hash()
    digest.update(text.encode("utf-8", "surrogatepass"))
    return digest.hexdigest()
