"""Errors of a script's state: two exceptions, each with one message."""

from __future__ import annotations


class StateError(ValueError):
    """A state that cannot be described or installed.

    The message has three parts: where, what, and what to do next. Nothing was changed.
    """

    def __init__(self, where: str, what: str, then: str) -> None:
        super().__init__(f"{where}: {what}; {then}")
        self.where = where
        self.what = what
        self.then = then


class MisuseError(RuntimeError):
    """A script that uses Lockstep in a way that cannot work; the message is one sentence."""
