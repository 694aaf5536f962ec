"""Slabs: shared memory in which a data process hands over the tensors of a batch.

A slab is a memfd that both processes map. The data process writes one batch into it; the main
process makes tensors over it without a copy. When the last tensor is gone, the slab returns to
its data process, which writes the next batch there. A larger slab of the same number replaces
one that is too small.

    slab = blobs, each at a multiple of 64; tail: table of the blobs (JSON), text of pack()
"""

from __future__ import annotations

import json
import mmap
import os
import weakref
from collections import deque
from typing import NamedTuple

import torch

_ALIGN = 64
_CHUNK = 64 << 10


class Written(NamedTuple):
    """Where a batch lies in a slab. `descriptor` is the slab's memfd if it is a new one."""

    slab: int
    descriptor: int | None
    bytes: int  # The size of the slab.
    tail: int  # Offset in the slab.
    table_bytes: int
    text_bytes: int


def _round_up(value: int, unit: int) -> int:
    return -(-value // unit) * unit


class SlabWriter:
    """The slabs of one data process, on its side."""

    def __init__(self) -> None:
        self._maps: list[mmap.mmap] = []
        self._free: list[int] = []  # The one returned last comes last: its pages are warm.

    def free(self, slab: int) -> None:
        self._free.append(slab)

    def write(self, text: bytes, blobs: list[torch.Tensor]) -> Written:
        """Copies a batch into a free slab; the caller closes `descriptor`. Raises OSError."""
        offset = 0
        table = []
        for blob in blobs:
            offset = _round_up(offset, _ALIGN)
            table.append([str(blob.dtype)[len("torch.") :], list(blob.shape), offset])
            offset += blob.numel() * blob.element_size()
        head = json.dumps(table, separators=(",", ":")).encode()
        total = offset + len(head) + len(text)
        slab, descriptor = self._room(total)
        target = self._maps[slab]
        for blob, (_, _, start) in zip(blobs, table, strict=True):
            count = blob.numel()
            if count:
                view = torch.frombuffer(target, dtype=blob.dtype, count=count, offset=start)
                view.view(blob.shape).copy_(blob)
        target[offset:total] = head + text
        return Written(slab, descriptor, len(target), offset, len(head), len(text))

    def _room(self, wanted: int) -> tuple[int, int | None]:
        for place in reversed(range(len(self._free))):
            if len(self._maps[self._free[place]]) >= wanted:
                return self._free.pop(place), None
        size = _round_up(max(wanted + wanted // 4, 1), _CHUNK)
        descriptor = os.memfd_create("lockstep-batch", os.MFD_CLOEXEC)
        try:
            os.ftruncate(descriptor, size)
            fresh = mmap.mmap(descriptor, size)
        except BaseException:
            os.close(descriptor)
            raise
        if self._free:
            slab = self._free.pop()
            self._maps[slab] = fresh
        else:
            slab = len(self._maps)
            self._maps.append(fresh)
        return slab, descriptor


class SlabReader:
    """The slabs of one data process, on the side of the main process.

    When the last tensor over a slab is gone, the thread that drops it, perhaps within a garbage
    collection, adds (owner, slab) to `returned`.
    """

    def __init__(self, owner: int, returned: deque[tuple[int, int]]) -> None:
        self._owner = owner
        self._maps: dict[int, mmap.mmap] = {}
        self._returned = returned

    def map(self, written: Written) -> None:
        """Maps a new slab; its descriptor may be closed then."""
        assert written.descriptor is not None
        self._maps[written.slab] = mmap.mmap(written.descriptor, written.bytes)

    def read(self, written: Written, copy: bool) -> tuple[bytes, list[torch.Tensor]]:
        """The text and the tensors of a batch. With `copy`, or without tensors, the slab returns
        at once."""
        memory = memoryview(self._maps[written.slab])
        after_table = written.tail + written.table_bytes
        table = json.loads(bytes(memory[written.tail : after_table]))
        text = bytes(memory[after_table : after_table + written.text_bytes])
        blobs = []
        for name, shape, offset in table:
            dtype = getattr(torch, name)
            count = 1
            for extent in shape:
                count *= extent
            if not count:
                blobs.append(torch.empty(shape, dtype=dtype))
                continue
            blob = torch.frombuffer(memory, dtype=dtype, count=count, offset=offset).view(shape)
            blobs.append(blob.clone() if copy else blob)
        # Each tensor keeps `memory`; it dies with the last of them, or here if none does.
        note = (self._owner, written.slab)
        weakref.finalize(memory, self._returned.append, note).atexit = False
        return text, blobs
