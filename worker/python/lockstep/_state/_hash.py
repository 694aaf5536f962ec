"""A hash of values, to compare the states of processes."""

from __future__ import annotations

import ctypes
import hashlib
from typing import Iterable

import torch
from torch import Tensor

from ._modules import NamedBuffer
from ._tensors import Entry, in_memory


def hash_of(entries: Iterable[Entry], buffers: Iterable[NamedBuffer]) -> str:
    """A hash of names, kinds and bits. Includes `buffers` that have no entry."""
    digest = hashlib.blake2b(digest_size=16)
    seen = set()
    for entry in entries:
        seen.add(entry.name if entry.section != "optimizer" else None)
        _add(digest, f"{entry.section} {entry.name}", entry.tensor)
    for buffer in buffers:
        if buffer.name not in seen:
            _add(digest, f"buffer {buffer.name}", buffer.get())
    return digest.hexdigest()


def _add(digest: "hashlib._Hash", name: str, tensor: Tensor) -> None:
    digest.update(f"{name} {tuple(tensor.shape)} {tensor.dtype}\n".encode())
    if tensor.layout is torch.sparse_coo:
        plain = tensor.detach().coalesce()
        _add(digest, "indices", plain.indices())
        _add(digest, "values", plain.values())
    elif tensor.layout is torch.strided and not tensor.is_meta and not tensor.is_quantized:
        plain = in_memory(tensor)
        size = plain.numel() * plain.element_size()
        if size:
            digest.update((ctypes.c_uint8 * size).from_address(plain.data_ptr()))
