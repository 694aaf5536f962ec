"""The generators that scripts draw from: torch's, numpy's and random's default ones."""
from __future__ import annotations

import random
import sys

# torch and numpy have the same generator: with one seed they would draw the same numbers.
_OTHER_STREAM = 0x5BD1E995


def seed_all(seed: int) -> None:
    """`seed`: 32 bits, which is all that torch's generator for CPUs uses of a seed.

    Not torch.manual_seed(), which takes ten times as long.
    """
    import torch

    torch.default_generator.manual_seed(seed)
    random.seed(seed ^ _OTHER_STREAM)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed(seed ^ _OTHER_STREAM)


def fold(seed: int) -> int:
    """64 bits of a seed as 32."""
    return (seed ^ (seed >> 32)) & 0xFFFFFFFF
