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

import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from ._errors import Left, LockstepError, Misuse, Stopped

if TYPE_CHECKING:
    import os
    from collections.abc import Collection, Sequence

    from torch import nn

    from ._frameworks._hf import Trainer
    from ._job_data import Batch
    from ._run import Run

__all__ = ["Batch", "Left", "LockstepError", "Misuse", "Run", "Stopped", "Trainer", "export_program",
           "fit", "start"]


def start() -> Run:
    """Begins the run of this process, and seeds it. Call it before you make the model.

    Under `lockstep run train.py` the process is one of the run's workers; started by itself, it is a
    run of one. Raises LockstepError for an impossible job, and if another launcher or another run
    already has the process.
    """
    from ._start import start_run

    return start_run()


def export_program(model: nn.Module, example: Any, path: str | os.PathLike[str], *,
                   eval_example: Any = None, least_samples: int = 1, most_samples: int = 4096,
                   derivatives: Collection[type] = (), classes: Sequence[str] = (),
                   transforms: Sequence[str] = ()) -> tuple[str, str]:
    """Saves PATH.pt2 for training and PATH.eval.pt2 for evaluation (MODELS.md), and returns the two
    names: `model.path` and `model.eval_path` of a job with `model.name: exported`.

    example: a batch of at least two samples in the shape of the data; a tuple or a dictionary if
    forward() takes more. eval_example: the same for evaluation, if its shape differs.
    least_samples, most_samples: sizes of slots and of evaluation batches. derivatives: classes of
    torch.autograd.Function whose backward is nothing but the derivatives of their forward. classes,
    transforms: both files keep them, as lockstep.json, for people who open the files.

    Exports a model in training mode as it is, so its modules in evaluation mode stay so; puts a
    model in evaluation mode into training mode first. Leaves the model as it was. Raises Misuse if
    a job could not train the program, or would train it otherwise than the model.
    """
    from ._export import save_programs

    return save_programs(model, example, path, eval_example=eval_example,
                         least_samples=least_samples, most_samples=most_samples,
                         derivatives=derivatives, classes=classes, transforms=transforms)


def fit(module: Any, data: Any = None, *, workers: int | None = None, collate: Any = None,
        precision: Any = "32-true", gradient_clip_val: float | None = None,
        gradient_clip_algorithm: str | None = None, metrics: Sequence[str] = (),
        **options: Any) -> None:
    """Trains a LightningModule. Make the module after start() and before this call.

    data: a map-style Dataset, a DataLoader or a LightningDataModule; None: the module's
    train_dataloader(). workers, collate: as for Run.batches(). metrics: names of the module's
    metrics of torchmetrics that it gives to self.log() as objects: they count over an epoch.
    options: options of Lightning's Trainer; Lockstep refuses by name those that a run sets in
    another way. Raises Misuse for a module that a run cannot train, and SystemExit where the run
    stops (FRAMEWORKS.md).
    """
    from ._frameworks._fit import fit as fit_module

    fit_module(module, data, workers, collate, precision, gradient_clip_val,
               gradient_clip_algorithm, metrics, options)


# A type checker takes the names from above: to it, a module with __getattr__ has every name.
if not TYPE_CHECKING:
    # `from lockstep import *` asks for each of them, even if transformers is not installed.
    if "transformers" not in sys.modules and find_spec("transformers") is None:
        __all__.remove("Trainer")

    def __getattr__(name: str) -> Any:
        if name == "Run":
            from ._run import Run

            return Run
        if name == "Trainer":
            from ._frameworks._hf import Trainer

            return Trainer
        if name == "Batch":
            from ._job_data import Batch

            return Batch
        raise AttributeError(f"module 'lockstep' has no attribute {name!r}")
