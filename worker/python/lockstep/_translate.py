"""Translates errors of the parts, and of the compiler, into the errors of lockstep/__init__.py."""
from __future__ import annotations

import contextlib
from typing import Iterator

from ._core import CoreError
from ._data import DataError
from ._errors import BAD_DATA, LockstepError, Misuse
from ._numerics import misuse_of_compiler
from ._state import MisuseError, StateError


def ours(error: BaseException | None) -> BaseException | None:
    """The same error in our words, if there are any."""
    if not isinstance(error, (MisuseError, StateError, CoreError, DataError)):
        return misuse_of_compiler(error) or error
    try:
        with as_ours():
            raise error
    except LockstepError as translated:
        return translated


@contextlib.contextmanager
def as_ours() -> Iterator[None]:
    """Translates errors that are raised within, as ours() does."""
    try:
        yield
    except MisuseError as why:
        raise Misuse(str(why)) from None
    except StateError as why:
        raise LockstepError(str(why), BAD_DATA) from None  # as where the core asks for the state
    except (CoreError, DataError) as why:
        raise LockstepError(str(why), why.code) from None
