"""Seeds libraries that draw from generators of their own, which a sample cannot seed.

albumentations (from 1.4.19 on): every transform, and every composition of transforms, has a pair of
generators, seeded by the clock when it is made. From seed_libraries() on, an outermost call of one
first takes a seed from Python's default generator, which Lockstep seeds for each sample.
"""

from __future__ import annotations

import functools
import random
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

_BASES = ("BaseCompose", "BasicTransform")


class _Inside(threading.local):
    """Whether a call is inside of another, which has seeded the generators of the inner one."""

    value = False


_INSIDE = _Inside()


def seed_libraries() -> None:
    """Seeds the libraries that are imported. A second call does nothing."""
    library = sys.modules.get("albumentations")
    for name in _BASES:
        base = getattr(library, name, None)
        if isinstance(base, type) and hasattr(base, "set_random_seed"):
            for each in _with_subclasses(base):
                call = each.__dict__.get("__call__")
                if call is not None and not hasattr(call, "lockstep_seeds"):
                    each.__call__ = _seeding(call)  # type: ignore[method-assign]


def _with_subclasses(base: type) -> Iterator[Any]:
    yield base
    for each in base.__subclasses__():
        yield from _with_subclasses(each)


def _seeding(call: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(call)
    def seeded(self: Any, *words: Any, **named: Any) -> Any:
        if _INSIDE.value:
            return call(self, *words, **named)
        _INSIDE.value = True
        try:
            self.set_random_seed(random.getrandbits(31))
            return call(self, *words, **named)
        finally:
            _INSIDE.value = False

    seeded.lockstep_seeds = True  # type: ignore[attr-defined]
    return seeded
