"""Lockstep for a training loop in Python: the same weights for any number of workers, every sample
once, and a run that goes on when a machine dies.

    # /// lockstep
    # train: {global_batch: 256, slots: 8, epochs: 10}
    # ///
    import torch, lockstep

    run = lockstep.start()
    model = Net()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    run.keep(model=model, optimizer=optimizer)
    for x, y in run.batches(MyDataset(), workers=2):
        loss = torch.nn.functional.cross_entropy(model(x), y)
        run.backward(loss)

`lockstep run train.py --workers 4` trains it with four workers, `python train.py` alone, with the
same weights.
"""
from __future__ import annotations

from typing import TYPE_CHECKING

from ._errors import Left, LockstepError, Misuse, Stopped

if TYPE_CHECKING:
    from ._run import Run

__all__ = ["Left", "LockstepError", "Misuse", "Run", "Stopped", "start"]


def start() -> Run:
    """Begins the run of this process, and seeds it: before the model is made.

    Under `lockstep run train.py` the process is one of the run's workers; started by itself, it is a
    run of one. Raises LockstepError for a job that cannot be, and where another launcher or another
    run already has the process.
    """
    from ._start import start_run

    return start_run()


def __getattr__(name: str):
    if name == "Run":
        from ._run import Run

        return Run
    raise AttributeError(f"module 'lockstep' has no attribute {name!r}")
