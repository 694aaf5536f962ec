"""Shows the run where this process hangs: on a signal, faulthandler writes the frames of all
threads into memory that the worker reads (worker/process/python_stacks.h). Data processes inherit
both."""
from __future__ import annotations

import faulthandler
import signal


def answer(memory: int) -> None:
    """`memory`: a descriptor; below 0: no worker reads stacks."""
    if memory >= 0:
        faulthandler.register(signal.SIGRTMIN + 6, file=memory, all_threads=True)
