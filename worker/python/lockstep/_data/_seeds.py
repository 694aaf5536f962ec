"""Seeds of samples: what a sample draws depends on (seed, epoch, position) and nothing else.

The position in the epoch counts, not the index: a sample is augmented in another way in each
epoch, and in the same way by whichever process computes it.
"""

from __future__ import annotations

import contextlib
import random
import sys
from collections.abc import Iterator

import torch

from .._seeds import set_generators

_MASK = (1 << 64) - 1
_GOLDEN = 0x9E3779B97F4A7C15

SAMPLE = 1  # One sample, by __getitem__.
SLOT = 2  # All samples of a slot, by __getitems__: the first position counts.
COLLATE = 3  # The collate function: the first position counts.
EPOCH = 4  # The script's draws at the start of an epoch.
DRAW = 5  # Which sample stands at a position, where samples are drawn by weights.


def mix(value: int) -> int:
    """The finalizer of splitmix64."""
    value = (value + _GOLDEN) & _MASK
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & _MASK
    return value ^ (value >> 31)


def epoch_key(seed: int, epoch: int, purpose: int) -> int:
    """The part of the hash that all samples of an epoch share."""
    return mix(mix(mix(seed & _MASK) ^ (epoch & _MASK)) ^ purpose)


def seed_generators(key: int, position: int) -> None:
    """Seeds torch's CPU generator, numpy's (if it is imported) and Python's.

    The generators of torch and numpy take 32 bits. They are the same algorithm, so they get
    different halves of the hash: with one seed, both would draw the same numbers.
    """
    value = mix(key ^ (position & _MASK))
    set_generators(value & 0xFFFFFFFF, value >> 32, value)


def import_numpy() -> None:
    """Imports numpy if it is installed: one that a sample imports would miss its first seed."""
    with contextlib.suppress(ImportError):
        import numpy.random  # noqa: F401


@contextlib.contextmanager
def in_process() -> Iterator[None]:
    """Gives samples the same settings in whichever process computes them.

    Within, torch uses one thread, without autocast and with gradients. Generators stay as the
    samples leave them.
    """
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        with torch.enable_grad(), torch.autocast("cpu", enabled=False):
            yield
    finally:
        torch.set_num_threads(threads)


@contextlib.contextmanager
def generators_kept() -> Iterator[None]:
    """Restores the states of the generators afterwards, so that later code draws the same numbers
    as without this block. Takes 0.2 ms."""
    numpy = sys.modules.get("numpy")
    of_torch = torch.default_generator.get_state()
    of_numpy = numpy.random.get_state() if numpy is not None else None
    of_python = random.getstate()
    try:
        yield
    finally:
        random.setstate(of_python)
        if numpy is not None:
            numpy.random.set_state(of_numpy)
        torch.default_generator.set_state(of_torch)
