"""lockstep.fit(): trains a LightningModule as a script's loop does (_module_loop.py). It does not
need the package lightning: any object with the interface will do."""
from __future__ import annotations

import contextlib
import functools
from typing import Any, Callable, Iterator, Sequence

from .._errors import Misuse
from .._translate import as_ours
from ._common import Length, one_at_a_time, run_for
from ._configured import Configured
from ._epoch_metrics import EpochMetrics
from ._module_hooks import call, check_module, overrides
from ._module_loop import ModuleLoop
from ._options import check_options, precision_of, steps_of
from ._stand_in import StandIn
from ._validation import name_of, score_of, validation_data


def fit(module: Any, data: Any, workers: int | None, collate: Any, precision: Any,
        gradient_clip_val: Any, gradient_clip_algorithm: Any, metrics: Sequence[str],
        options: dict[str, Any]) -> None:
    """See lockstep.fit()."""
    run = run_for("lockstep.fit()")
    data = options.pop("datamodule", None) if data is None else data
    check_options(options, run.device)
    check_module(module)
    trainer = StandIn(run)
    trainer.precision = precision_of(precision)
    trainer.gradient_clip_val = gradient_clip_val
    trainer.gradient_clip_algorithm = gradient_clip_algorithm
    if overrides(data, "train_dataloader"):
        trainer.datamodule = data
    loop = ModuleLoop(run, module, trainer)
    with _attached(module, trainer, loop.methods()), as_ours():
        source = _data_of(module, data)
        length = Length.of(run, source, collate)
        length.check(steps_of(options, length.steps_per_epoch), "lockstep.fit(max_epochs=, max_steps=)")
        trainer.measure(length)
        call(module, "configure_model")
        module.to(run.device)
        call(module, "on_fit_start")
        loop.keep(EpochMetrics(module, metrics),
                  Configured.of(module.configure_optimizers(), overrides(module, "lr_scheduler_step")))
        call(module, "on_train_start")
        validation = validation_data(module, trainer.datamodule, options)
        for number, held_out in enumerate(validation):
            run.evaluate(functools.partial(score_of, loop, number if len(validation) > 1 else None),
                         held_out, name=name_of(number))
        for batch in run.batches(source, workers=workers, collate=collate):
            loop.compute(batch)
        call(module, "on_train_end")
        call(module, "on_fit_end")
        for owner in filter(None, (trainer.datamodule, module)):
            call(owner, "teardown", "fit")


@contextlib.contextmanager
def _attached(module: Any, trainer: StandIn, replaced: dict[str, Callable[..., Any]]
              ) -> Iterator[None]:
    """Gives our trainer and our methods to the module, and to modules of Lightning inside it."""
    ours = [one for one in module.modules()
            if one is module or (hasattr(one, "training_step") and hasattr(one, "log_dict"))]
    for one in ours:
        for name, method in replaced.items():
            setattr(one, name, method)
    module.trainer = trainer
    try:
        yield
    finally:
        module.trainer = None
        for one in ours:
            for name in replaced:
                one.__dict__.pop(name, None)


def _data_of(module: Any, data: Any) -> Any:
    """The data set or DataLoader; a LightningDataModule's, or the module's own, if need be."""
    owner = data if overrides(data, "train_dataloader") else module
    for one in {id(o): o for o in (owner, module)}.values():
        with one_at_a_time():
            call(one, "prepare_data")
        call(one, "setup", "fit")
    if data is not None and owner is not data:
        return data
    if not overrides(owner, "train_dataloader"):
        raise Misuse("lockstep.fit(module) was given no data; pass a data set, a DataLoader or a "
                     "LightningDataModule")
    return owner.train_dataloader()
