"""Facts about data before a run begins: length, fingerprint, whether samples come out alike."""

from __future__ import annotations

import dataclasses
import hashlib
import struct
import sys
from collections.abc import Mapping, Set
from typing import Any, NamedTuple

import torch

from ._errors import NOT_REPEATABLE, DataError
from ._fetch import Fetcher
from ._pack import tensor_bytes
from ._seeds import generators_kept, import_numpy, in_process
from ._source import Source
from ._task import Task

PROBES = 16
_MAX_DEPTH = 32


class Facts(NamedTuple):
    """`samples`: len(dataset). `fingerprint`: text that differs where the data differ."""

    samples: int
    fingerprint: str


class _Hash:
    """Hashes a sample by value.

    Numbers, strings, bytes, tensors, numpy arrays and nested containers count by type and
    content. Dataclasses and other objects count by class and fields; objects with the array
    interface (images of PIL) by their pixels. Any other object counts by its class alone.
    """

    def __init__(self) -> None:
        self._hash = hashlib.blake2b(digest_size=16)
        # Kept alive: the id of a container that is gone may be another's.
        self._seen: dict[int, tuple[int, Any]] = {}

    def hexdigest(self) -> str:
        return self._hash.hexdigest()

    def put(self, tag: str, *parts: bytes) -> None:
        for part in (tag.encode(), *parts):
            self._hash.update(struct.pack("<Q", len(part)))
            self._hash.update(part)

    def tensor(self, value: torch.Tensor) -> None:
        if value.layout != torch.strided or value.is_quantized or value.is_nested or value.is_meta:
            self.put("tensor", repr(value.detach()).encode())
            return
        plain = value.detach().as_subclass(torch.Tensor).cpu().resolve_conj().resolve_neg()
        content = tensor_bytes(plain.contiguous())
        self.put("tensor", str(plain.dtype).encode(), repr(tuple(plain.shape)).encode(), content)

    def sequence(self, tag: str, items: Any, depth: int) -> None:
        self.put(tag, struct.pack("<Q", len(items)))
        for item in items:
            self.value(item, depth)

    def fields(self, value: Any, fields: Mapping[str, Any], depth: int) -> None:
        self.put("object", type(value).__qualname__.encode(), struct.pack("<Q", len(fields)))
        for name in sorted(fields):
            self.put("field", name.encode())
            self.value(fields[name], depth)

    def again(self, value: Any) -> bool:
        """Whether a container was met before; graphs of objects may have cycles."""
        if id(value) not in self._seen:
            self._seen[id(value)] = (len(self._seen), value)
            return False
        self.put("again", struct.pack("<Q", self._seen[id(value)][0]))
        return True

    def value(self, value: Any, depth: int = 0) -> None:
        numpy = sys.modules.get("numpy")
        if depth > _MAX_DEPTH:
            self.put("deep", type(value).__qualname__.encode())
        elif value is None or isinstance(value, (bool, int)):
            self.put(type(value).__name__, str(value).encode())
        elif isinstance(value, float):
            self.put("float", struct.pack("<d", value))
        elif isinstance(value, complex):
            self.put("complex", struct.pack("<dd", value.real, value.imag))
        elif isinstance(value, str):
            self.put("str", value.encode("utf-8", "surrogatepass"))
        elif isinstance(value, (bytes, bytearray, memoryview)):
            self.put("bytes", bytes(value))
        elif isinstance(value, torch.Tensor):
            self.tensor(value)
        elif numpy is not None and isinstance(value, (numpy.ndarray, numpy.generic)):
            self.array(numpy.asarray(value), depth)
        elif isinstance(value, tuple):
            self.sequence("sequence", value, depth + 1)
        elif isinstance(value, Set):
            self.put("set", *sorted(hash_of(item).encode() for item in value))
        elif self.again(value):
            pass
        elif isinstance(value, list):
            self.sequence("sequence", value, depth + 1)
        elif isinstance(value, Mapping):
            self.sequence("mapping", list(value.items()), depth + 1)
        else:
            self.other(value, depth + 1)

    def array(self, value: Any, depth: int) -> None:
        if value.dtype.hasobject:
            self.sequence("objects", value.ravel().tolist(), depth + 1)
            return
        self.put("array", str(value.dtype).encode(), repr(value.shape).encode(), value.tobytes())

    def other(self, value: Any, depth: int) -> None:
        interface = getattr(value, "__array_interface__", None)
        if isinstance(interface, dict) and isinstance(interface.get("data"), bytes):
            shape = repr(tuple(interface["shape"])).encode()
            self.put("pixels", str(interface.get("typestr")).encode(), shape, interface["data"])
        elif dataclasses.is_dataclass(value) and not isinstance(value, type):
            names = [field.name for field in dataclasses.fields(value)]
            self.fields(value, {name: getattr(value, name) for name in names}, depth)
        elif isinstance(getattr(value, "__dict__", None), dict) and not callable(value):
            self.fields(value, vars(value), depth)
        else:
            self.put("class", type(value).__qualname__.encode())


def hash_of(value: Any) -> str:
    """A hash of a sample by value; see _Hash for what counts."""
    walk = _Hash()
    walk.value(value)
    return walk.hexdigest()


def _probes(source: Source) -> list[int]:
    """Indices that depend on the class and the length: the same in every process."""
    if source.samples <= PROBES:
        return list(range(source.samples))
    found: dict[int, None] = {}
    for number in range(4 * PROBES):
        text = f"{source.name} {source.samples} {number}".encode()
        digest = hashlib.blake2b(text, digest_size=8).digest()
        found[int.from_bytes(digest, "little") % source.samples] = None
        if len(found) == PROBES:
            break
    return list(found)


def facts(source: Source, seed: int, exact: bool = True) -> Facts:
    """Length and fingerprint of the data; computes up to 16 samples twice, in process.

    Feed.start() comes first: a file that the dataset opens for its first sample would otherwise be
    shared, with its offset, by all data processes.

    The fingerprint is the dataset's own `fingerprint` (a str), or a hash of class, length and the
    samples. It is not `_fingerprint`: Hugging Face's datasets draw theirs at random where they
    cannot hash a function of map(), so it differs in each process. A sample that comes out
    differently with the same seeds raises DataError(78) in exact; otherwise the hash leaves it
    out. A sample that fails raises DataError(65).
    """
    import_numpy()
    fetcher = Fetcher(source, seed)
    walk = _Hash()
    walk.put("dataset", source.name.encode(), str(source.samples).encode())
    with in_process(), generators_kept():
        for index in _probes(source):
            task = Task(0, 0, 0, [index], [index])
            first, second = (hash_of(fetcher.samples(task)[0]) for _ in range(2))
            if first == second:
                walk.put("sample", str(index).encode(), first.encode())
            elif exact:
                raise DataError(
                    NOT_REPEATABLE,
                    f"sample {index} of {source.name} differs when it is fetched twice with the "
                    "same seeds: it draws numbers that nobody can seed; draw by torch.rand, "
                    "numpy.random or random instead of a generator of its own, and keep no "
                    "state between samples (or set comm.numerics: fast)",
                )
            else:
                walk.put("unseeded", str(index).encode())
    own = getattr(source.dataset, "fingerprint", None)
    if isinstance(own, str) and own:
        return Facts(source.samples, own)
    return Facts(source.samples, walk.hexdigest())
