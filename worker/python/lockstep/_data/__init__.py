"""Datasets of a script, and how their batches reach the training loop."""

from ._drawing import Drawing
from ._errors import DataError
from ._facts import Facts, facts
from ._feed import Feed
from ._pack import remade
from ._source import Source, unpack
from ._task import Batch, Task

__all__ = ["Batch", "DataError", "Drawing", "Facts", "Feed", "Source", "Task", "facts", "remade",
           "unpack"]
