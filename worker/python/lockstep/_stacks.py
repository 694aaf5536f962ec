"""Where this process stands, for the run that finds it hanging: a signal has faulthandler write the
frames of all threads into memory that the worker reads (worker/process/python_stacks.h). Data
processes inherit both."""
from __future__ import annotations

import faulthandler
import signal


def answer(memory: int) -> None:
    """`memory`: a descriptor; below 0: nobody asks."""
    if memory >= 0:
        faulthandler.register(signal.SIGRTMIN + 6, file=memory, all_threads=True)
