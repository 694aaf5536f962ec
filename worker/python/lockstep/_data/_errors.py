"""Errors of data, each with the exit code of the worker that meets it."""

from __future__ import annotations

USAGE = 64  # The script asks for something that Lockstep does not do.
BAD_DATA = 65  # A sample, a collate function or the length of the dataset is at fault.
INTERNAL = 70  # A process that Lockstep needs is gone.
NOT_REPEATABLE = 78  # The same sample with the same seeds comes out differently.


class DataError(Exception):
    """An error of the data path. `code` is the exit code that the worker ends with."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code
        self.text = text
