"""Canonical JSON of everything but tensors: one value has one text, and one text has one value.

    encode(value, path, refer) -> bytes     sorted, without spaces, ASCII
    decode(text, where) -> value            with a TensorRef where a tensor stood
    fill(value, tensor_of) -> value         puts tensors in the place of every TensorRef

Values: None, bool, int, float (nan and inf too), str, list, tuple, torch.Size, dict with scalar
keys, Counter, OrderedDict, defaultdict of a plain type, numpy scalars and small arrays,
torch.dtype, torch.device, and tensors. Lockstep refuses anything else with its path. It neither
writes nor reads a pickle.

A dict whose keys are words is a JSON object. All else that JSON lacks is an object of one key:
`$t` tuple, `$d` dict, `$o` OrderedDict, `$c` Counter, `$dd` defaultdict, `$f` nan or inf,
`$s` Size, `$n` numpy scalar, `$a` numpy array, `$y` dtype, `$v` device, `$r` tensor, `$g` tensor on
the device that the run computes on, where that is not the CPU.

encode() writes a dict in the order of its keys, so that a process that installed a state and one
that reached it by training write the same bytes. An OrderedDict keeps its own order.

INVARIANTS of decode(), whatever the bytes were
 O1 It returns a value or raises StateError: no other exception, no code of the text's choice.
 O2 encode(decode(text)) == text, so decode() refuses a text with spaces, with keys twice or in
    another order, or with a number in another spelling.
 O3 At most MAX_BYTES, MAX_DEPTH brackets deep.
"""

from __future__ import annotations

import enum
import json
import math
import re
import sys
from collections import Counter, OrderedDict, defaultdict
from dataclasses import dataclass
from typing import Any, Callable, Optional

from ._errors import StateError

MAX_BYTES = 64 << 20
MAX_DEPTH = 64
MAX_INT_BITS = 1024
MAX_ARRAY_BYTES = 64 << 10

_ARRAY_DTYPE = re.compile(r"\A[biuf][1248]\Z")
_DEVICE = re.compile(r"\A[a-z]{1,16}(:[0-9]{1,3})?\Z")
_FACTORIES = {f.__name__: f for f in (int, float, str, bool, list, dict, tuple)}
_STRING = re.compile(rb'"(?:[^"\\]+|\\.)*"?', re.DOTALL)  # matches to the end if open: linear
_OTHER = "a state holds numbers, words, lists, dicts and tensors; leave it out of state_dict() " \
    "and make it again in the constructor"


@dataclass(frozen=True)
class TensorRef:
    """Stands for the tensor `name` of the section "optimizer".

    `order`: its dimensions from the outermost to the innermost in memory; None: row-major.
    `is_on_device`: it lies where the run computes, and not on the CPU.
    """

    name: str
    order: Optional[tuple[int, ...]] = None
    is_on_device: bool = False


Refer = Callable[[Any, str], TensorRef]


def no_tensors(_tensor: Any, path: str) -> TensorRef:
    """A `refer` for values that may not hold tensors."""
    raise StateError(path, "a tensor where none may be", "keep the tensor as a buffer of a module")


def encode(value: Any, path: str, refer: Refer = no_tensors) -> bytes:
    """The text of `value`. `path` is its name in messages, e.g. "scheduler".

    Raises StateError with the path of the first value that a state cannot hold.
    """
    tree = _tree(value, path, refer, 0)
    text = json.dumps(tree, sort_keys=True, separators=(",", ":"), allow_nan=False).encode("ascii")
    if len(text) > MAX_BYTES:
        raise StateError(path, f"its values take {len(text)} bytes of at most {MAX_BYTES}",
                         "keep large values as tensors")
    return text


def decode(text: bytes, where: str) -> Any:
    """The value of `text`, with a TensorRef for each tensor. `where` stands in messages."""
    then = "the state is damaged, or another version of Lockstep wrote it"
    if len(text) > MAX_BYTES:
        raise StateError(where, f"{len(text)} bytes of at most {MAX_BYTES}", then)
    depth = deepest = 0
    for bracket in re.findall(rb"[\[\]{}]", _STRING.sub(b"", text)):
        depth += 1 if bracket in b"[{" else -1
        deepest = max(deepest, depth)
    if deepest > 3 * MAX_DEPTH:
        raise StateError(where, "values lie in each other too deeply", then)
    try:
        value = _value(json.loads(text.decode("ascii"), parse_int=_int, parse_constant=_refuse))
        again = encode(value, where, lambda tensor, path: tensor)
    except (ValueError, TypeError, LookupError, ArithmeticError, ImportError,
            RecursionError, RuntimeError) as error:  # the last: torch has no such device
        if isinstance(error, StateError) and error.then == then:
            raise
        raise StateError(where, f"no canonical JSON ({str(error)[:200]})", then) from None
    if again != text:
        at = next((i for i, (a, b) in enumerate(zip(again, text)) if a != b), len(again))
        raise StateError(where, f"no canonical JSON from byte {at} on", then)
    return value


def fill(value: Any, tensor_of: Callable[[TensorRef], Any]) -> Any:
    """A copy of `value` with tensor_of(ref) for each TensorRef, in new containers."""
    kind = type(value)
    if kind is TensorRef:
        return tensor_of(value)
    if kind is list:
        return [fill(v, tensor_of) for v in value]
    if kind is tuple:
        return tuple(fill(v, tensor_of) for v in value)
    if kind is defaultdict:
        return defaultdict(value.default_factory, {k: fill(v, tensor_of) for k, v in value.items()})
    if kind in (dict, OrderedDict, Counter):
        return kind({k: fill(v, tensor_of) for k, v in value.items()})
    return value


def references(value: Any) -> list[TensorRef]:
    """Every TensorRef in `value`."""
    found: list[TensorRef] = []
    fill(value, found.append)
    return found


def is_function(value: Any) -> bool:
    """True for functions and methods, written in Python or in C."""
    return callable(value) and hasattr(value, "__name__") and not isinstance(value, type)


def _tree(value: Any, path: str, refer: Refer, depth: int) -> Any:
    """`value` in the terms of JSON."""
    kind = type(value)
    if value is None or kind in (bool, str):
        return value
    if kind is int:
        if value.bit_length() > MAX_INT_BITS:
            raise StateError(path, f"an integer of {value.bit_length()} bits", _OTHER)
        return value
    if kind is float:
        return value if math.isfinite(value) else {"$f": repr(value)}
    if depth >= MAX_DEPTH:
        raise StateError(path, "values lie in each other too deeply, or in a circle", _OTHER)
    if kind in (list, tuple):
        items = [_tree(v, f"{path}[{i}]", refer, depth + 1) for i, v in enumerate(value)]
        return items if kind is list else {"$t": items}
    if kind is dict and all(type(k) is str and k[:1] != "$" for k in value):
        return {k: _tree(value[k], f"{path}.{k}" if path else k, refer, depth + 1)
                for k in sorted(value)}
    if kind in (dict, Counter, OrderedDict, defaultdict):
        keys = [(_key(k, path), k) for k in value]
        if kind is not OrderedDict:
            keys.sort(key=lambda key: json.dumps(key[0]))
        pairs = [[key, _tree(value[k], f"{path}[{k!r}]", refer, depth + 1)] for key, k in keys]
        if kind is OrderedDict:
            return {"$o": pairs}
        if kind is not defaultdict:
            return {"$d" if kind is dict else "$c": pairs}
        factory = value.default_factory
        name = None if factory is None else getattr(factory, "__name__", "")
        if name is not None and _FACTORIES.get(name) is not factory:
            raise StateError(path, "a defaultdict with a function of its own", _OTHER)
        return {"$dd": [name, pairs]}
    return _rare_tree(value, path, refer)


def _rare_tree(value: Any, path: str, refer: Refer) -> Any:
    """_tree() of tensors and of types of numpy and torch, and the refusals."""
    kind = type(value)
    if kind is TensorRef:
        return _tree_of(refer(value, path))
    torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy")
    if torch is not None:
        if isinstance(value, torch.Tensor):
            return _tree_of(refer(value, path))
        if kind is torch.dtype:
            return {"$y": str(value).removeprefix("torch.")}
        if kind is torch.Size:
            return {"$s": list(value)}
        if kind is torch.device:
            return {"$v": str(value)}
    if numpy is not None and isinstance(value, (numpy.generic, numpy.ndarray)):
        dtype = value.dtype.newbyteorder("=").str[1:]
        if isinstance(value, numpy.generic) and _ARRAY_DTYPE.match(dtype):
            return {"$n": [dtype, numpy.asarray(value, "<" + dtype).tobytes().hex()]}
        if kind is numpy.ndarray and _ARRAY_DTYPE.match(dtype) and value.nbytes <= MAX_ARRAY_BYTES:
            return {"$a": [dtype, list(value.shape), value.astype("<" + dtype).tobytes().hex()]}
        raise StateError(path, f"a numpy value of type {value.dtype} and {value.nbytes} bytes",
                         "keep a tensor instead: torch.from_numpy()")
    what = ("an enum" if isinstance(value, enum.Enum) else "a function" if is_function(value)
            else "a set, whose order differs between processes" if kind in (set, frozenset)
            else f"a {kind.__qualname__}")
    raise StateError(path, what, _OTHER)


def _tree_of(ref: TensorRef) -> Any:
    return {"$g" if ref.is_on_device else "$r":
            ref.name if ref.order is None else [ref.name, list(ref.order)]}


def _key(key: Any, path: str) -> Any:
    """A key of a dict: a scalar, or a tuple of scalars."""
    scalar = (bool, int, float, str, type(None))
    if type(key) in scalar or (type(key) is tuple and all(type(k) in scalar for k in key)):
        return _tree(key, path, no_tensors, 0)
    raise StateError(path, f"a dict with a {type(key).__qualname__} as a key", _OTHER)


def _value(tree: Any) -> Any:
    """The opposite of _tree(). Raises ValueError, TypeError or KeyError for anything else."""
    if type(tree) is list:
        return [_value(v) for v in tree]
    if type(tree) is not dict:
        return tree
    if len(tree) == 1:
        (tag, body), = tree.items()
        if tag[:1] == "$":
            return _tagged(tag, body)
    return {k: _value(v) for k, v in tree.items()}


def _tagged(tag: str, body: Any) -> Any:
    if tag == "$t":
        return tuple(_value(v) for v in _listed(body))
    if tag == "$d":
        return _dict_of(body)
    if tag == "$o":
        return OrderedDict(_dict_of(body))
    if tag == "$c":
        return Counter(_dict_of(body))
    if tag == "$dd":
        name, pairs = _listed(body)
        return defaultdict(None if name is None else _FACTORIES[name], _dict_of(pairs))
    if tag == "$f":
        return {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}[body]
    if tag in ("$r", "$g"):
        name, order = (body, None) if type(body) is str else _listed(body)
        if type(name) is not str:
            raise ValueError("a tensor without a name")
        return TensorRef(name, None if order is None else _numbers(order), tag == "$g")
    if tag in ("$n", "$a"):
        return _numpy_value(tag, _listed(body))
    if tag in ("$y", "$s", "$v"):
        import torch
        if tag == "$s":
            return torch.Size(_numbers(body))
        if tag == "$v":
            if type(body) is not str or not _DEVICE.match(body):
                raise ValueError("no device")
            return torch.device(body)
        dtype = vars(torch).get(body)
        if not isinstance(dtype, torch.dtype):
            raise ValueError("no dtype")
        return dtype
    raise ValueError(f"the tag {tag[:8]!r}")


def _numpy_value(tag: str, body: list) -> Any:
    import numpy
    dtype, data = body[0], bytes.fromhex(body[-1])
    if not _ARRAY_DTYPE.match(dtype) or len(data) > MAX_ARRAY_BYTES:
        raise ValueError("no numpy value")
    flat = numpy.frombuffer(data, "<" + dtype).astype(dtype)
    if tag == "$n":
        (scalar,) = flat
        return scalar
    return flat.reshape(_numbers(body[1]))


def _dict_of(pairs: Any) -> dict:
    found = {}
    for key, value in map(_listed, _listed(pairs)):
        key = _value(key)
        if key in found:
            raise ValueError("a key twice")
        found[key] = _value(value)
    return found


def _listed(body: Any) -> list:
    if type(body) is not list:
        raise ValueError("no list")
    return body


def _numbers(body: Any) -> tuple[int, ...]:
    if any(type(n) is not int or not 0 <= n < 1 << 62 for n in _listed(body)):
        raise ValueError("no sizes")
    return tuple(body)


def _int(digits: str) -> int:
    if len(digits) > MAX_INT_BITS // 3:
        raise ValueError("too large an integer")
    return int(digits)


def _refuse(word: str) -> None:
    raise ValueError(word)
