"""The generators that scripts draw from: the default ones of torch, numpy and random, and the
device's, if there is one."""
from __future__ import annotations

import random
import sys

# torch and numpy have the same generator: with one seed they would draw the same numbers.
_OTHER_STREAM = 0x5BD1E995


def set_generators(of_torch: int, of_numpy: int, of_python: int) -> None:
    """Seeds torch's generator for CPUs, numpy's (if it is imported), and Python's.

    The first two take 32 bits. Not torch.manual_seed(), which takes ten times as long.
    """
    import torch

    torch.default_generator.manual_seed(of_torch)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed(of_numpy)
    random.seed(of_python)


def seed_all(seed: int) -> None:
    """`seed`: 32 bits. Main process only: a forked one may not touch a device."""
    import torch

    set_generators(seed, seed ^ _OTHER_STREAM, seed ^ _OTHER_STREAM)
    accelerator = torch.accelerator.current_accelerator()
    if accelerator is not None:  # CUDA has no generator before its first use
        for generator in torch.get_device_module(accelerator).default_generators:
            generator.manual_seed(seed)


def fold(seed: int) -> int:
    """64 bits of a seed as 32."""
    return (seed ^ (seed >> 32)) & 0xFFFFFFFF
