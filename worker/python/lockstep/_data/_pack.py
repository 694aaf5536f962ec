"""A batch as a list of tensors and a JSON text, and back.

Tensors, numpy arrays and bytes travel as blobs; None, bool, int, float, str, list, tuple, named
tuple, dataclass and dict as JSON with a tag for what JSON does not have. Every other mapping
arrives as a dict, a subclass of str or tuple as a str or tuple. pack() refuses anything else, with
its place in the batch. It pickles nothing; a dataclass arrives field by field, without a call of
__init__().
"""

from __future__ import annotations

import ctypes
import dataclasses
import json
import sys
from collections.abc import Callable, Mapping
from typing import Any, Optional

import torch

from ._errors import BAD_DATA, DataError

MAX_TEXT_BYTES = 4 << 20  # For everything that is no tensor.
_MAX_DEPTH = 64
_PLAIN = (type(None), bool, int, float, str)


Each = Optional[Callable[[torch.Tensor], torch.Tensor]]


class _Packer:
    def __init__(self, takes_any_device: bool = False) -> None:
        self.blobs: list[torch.Tensor] = []
        self._takes_any_device = takes_any_device

    def refuse(self, value: Any, path: str, why: str) -> DataError:
        kind = type(value)
        name = kind.__qualname__
        if kind.__module__ not in ("builtins", "__main__"):
            name = f"{kind.__module__}.{name}"
        return DataError(
            BAD_DATA,
            f"collate returns {name} at {path}: {why}; return CPU tensors, numbers, strings and "
            "lists, tuples, dicts or dataclasses of these",
        )

    def blob(self, tensor: torch.Tensor) -> int:
        self.blobs.append(tensor)
        return len(self.blobs) - 1

    def tensor(self, value: torch.Tensor, path: str) -> list[Any]:
        if type(value) not in (torch.Tensor, torch.nn.Parameter):
            raise self.refuse(value, path, "the class of a tensor does not travel")
        if value.device.type != "cpu" and not self._takes_any_device:
            raise self.refuse(value, path, f"it is on {value.device}, a batch is made on the CPU")
        if value.layout != torch.strided or value.is_quantized or value.is_nested:
            raise self.refuse(value, path, "it is sparse, nested or quantized")
        return ["t", self.blob(value.detach().resolve_conj().resolve_neg())]

    def numpy(self, value: Any, path: str) -> list[Any] | None:
        numpy = sys.modules.get("numpy")
        if numpy is None:
            return None
        tag = "a" if type(value) is numpy.ndarray else "g"
        if tag == "g" and not isinstance(value, numpy.generic):
            return None
        try:
            array = numpy.array(value)  # A copy: torch wants it writable.
            return [tag, self.blob(torch.from_numpy(array))]
        except (TypeError, ValueError) as error:
            raise self.refuse(value, path, f"dtype {value.dtype} does not travel") from error

    def sequence(self, value: Any, path: str, depth: int) -> list[Any]:
        return [self.value(v, f"{path}[{i}]", depth) for i, v in enumerate(value)]

    def fields(self, tag: str, value: Any, found: dict[str, Any], path: str, depth: int) -> list[Any]:
        kind = type(value)
        if _find_class(kind.__module__, kind.__qualname__) is not kind:
            raise self.refuse(value, path, "the class is defined inside a function")
        items = [self.value(v, f"{path}.{name}", depth + 1) for name, v in found.items()]
        return [tag, kind.__module__, kind.__qualname__, items]

    def dataclass(self, value: Any, path: str, depth: int) -> list[Any]:
        names = [field.name for field in dataclasses.fields(value)]
        for name in names:
            if not hasattr(value, name):
                raise self.refuse(value, path, f"its field {name} has no value")
        for name in getattr(value, "__dict__", ()):
            if name not in names:
                raise self.refuse(value, path, f"its attribute {name} is no field of the dataclass")
        return self.fields("c", value, {name: getattr(value, name) for name in names}, path, depth)

    def value(self, value: Any, path: str, depth: int = 0) -> Any:
        if type(value) in _PLAIN:
            return value
        if isinstance(value, str):
            return str.__str__(value)
        if depth > _MAX_DEPTH:
            raise self.refuse(value, path, f"it is nested over {_MAX_DEPTH} deep")
        if isinstance(value, torch.Tensor):
            return self.tensor(value, path)
        if type(value) is list:
            return ["l", self.sequence(value, path, depth + 1)]
        if isinstance(value, tuple) and not hasattr(value, "_fields"):
            return ["u", self.sequence(value, path, depth + 1)]
        if type(value) in (bytes, bytearray):
            writable = bytearray(value)
            empty = torch.empty(0, dtype=torch.uint8)
            blob = torch.frombuffer(writable, dtype=torch.uint8) if writable else empty
            return ["b" if type(value) is bytes else "y", self.blob(blob)]
        if isinstance(value, tuple):
            return self.fields("n", value, dict(zip(type(value)._fields, value, strict=True)), path,
                               depth)
        if isinstance(value, Mapping):
            pairs = []
            for key, item in value.items():
                if isinstance(key, str):
                    key = str.__str__(key)
                if type(key) not in _PLAIN:
                    raise self.refuse(key, f"a key of {path}", "keys are numbers or strings")
                pairs.append([key, self.value(item, f"{path}[{key!r}]", depth + 1)])
            return ["d", pairs]
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            return self.dataclass(value, path, depth)
        packed = self.numpy(value, path)
        if packed is None:
            raise self.refuse(value, path, "its type does not travel between processes")
        return packed


def _find_class(module: str, qualname: str) -> Any:
    """A class by its name among the modules that are imported; imports none."""
    found: Any = sys.modules.get(module)
    for part in qualname.split("."):
        found = getattr(found, part, None)
    return found


def pack(value: Any) -> tuple[bytes, list[torch.Tensor]]:
    """Takes a batch apart: a text of its structure, and the tensors that the text counts.

    Raises DataError(65) for a value that cannot travel, naming its place in the batch.
    """
    packer = _Packer()
    text = json.dumps(packer.value(value, "batch"), separators=(",", ":")).encode()
    if len(text) > MAX_TEXT_BYTES:
        raise DataError(
            BAD_DATA,
            f"collate returns {len(text)} bytes of numbers and strings in lists and dicts, "
            f"{MAX_TEXT_BYTES} is the most; return tensors for numbers",
        )
    return text, packer.blobs


def remade(value: Any, each: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    """A batch with each(tensor) for its tensors; it shares nothing else mutable with `value`. Like
    pack(), it raises DataError for a value that cannot travel."""
    if hasattr(value, "remade"):
        return value.remade(each)
    packer = _Packer(takes_any_device=True)
    tree = packer.value(value, "batch")
    return _value(tree, packer.blobs, each)


def _sequence(items: list[Any], blobs: list[torch.Tensor], each: Each) -> list[Any]:
    return [_value(item, blobs, each) for item in items]


def _value(item: Any, blobs: list[torch.Tensor], each: Each = None) -> Any:
    if type(item) is not list:
        return item
    tag = item[0]
    if tag == "t":
        return blobs[item[1]] if each is None else each(blobs[item[1]])
    if tag == "l":
        return _sequence(item[1], blobs, each)
    if tag == "u":
        return tuple(_sequence(item[1], blobs, each))
    if tag == "d":
        return {key: _value(value, blobs, each) for key, value in item[1]}
    if tag == "a":
        return blobs[item[1]].numpy()
    if tag == "g":
        return blobs[item[1]].numpy()[()]
    if tag == "b":
        return tensor_bytes(blobs[item[1]])
    if tag == "y":
        return bytearray(tensor_bytes(blobs[item[1]]))
    return _instance(item, _sequence(item[3], blobs, each))


def _instance(item: list[Any], values: list[Any]) -> Any:
    found: Any = _find_class(item[1], item[2])
    is_tuple, is_class = item[0] == "n", isinstance(found, type)
    if not is_class or not (hasattr(found, "_make") if is_tuple else dataclasses.is_dataclass(found)):
        raise DataError(
            BAD_DATA,
            f"the batch holds a {item[2]}, which module {item[1]} of the training process lacks; "
            f"define the {'named tuple' if is_tuple else 'dataclass'} at the top level of train.py or "
            "of a module it imports",
        )
    if is_tuple:
        return found._make(values)
    made = object.__new__(found)
    for field, value in zip(dataclasses.fields(found), values, strict=True):
        object.__setattr__(made, field.name, value)  # frozen ones refuse their own
    return made


def tensor_bytes(tensor: torch.Tensor) -> bytes:
    """The memory of a contiguous CPU tensor."""
    return ctypes.string_at(tensor.data_ptr(), tensor.numel() * tensor.element_size())


def unpack_value(text: bytes, blobs: list[torch.Tensor]) -> Any:
    """The batch of pack(), with `blobs` for its tensors."""
    return _value(json.loads(text), blobs)
