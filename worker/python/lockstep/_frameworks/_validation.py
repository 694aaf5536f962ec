"""validation_step() of a LightningModule, as the evaluations of a run (Run.evaluate())."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._errors import Misuse
from ._module_hooks import overrides, takes_dataloader_idx

if TYPE_CHECKING:
    from ._module_loop import ModuleLoop

_HOOKS = ("on_validation_start", "on_validation_epoch_start", "on_validation_batch_start",
          "on_validation_batch_end", "on_validation_epoch_end", "on_validation_end")


def validation_data(module: Any, datamodule: Any, options: dict[str, Any]) -> list[Any]:
    """The data for validation_step(), a data set for each evaluation; empty: there is none, or
    limit_val_batches=0."""
    if not overrides(module, "validation_step") or options.get("limit_val_batches") in (0, 0.0):
        return []
    data = options.get("val_dataloaders")
    for owner in (datamodule, module):
        if data is None and overrides(owner, "val_dataloader"):
            data = owner.val_dataloader()
    found = [] if data is None else list(data) if isinstance(data, (list, tuple)) else [data]
    if not found:
        return []
    if len(found) > 1 and not takes_dataloader_idx(module.validation_step):
        raise Misuse(f"{len(found)} validation DataLoaders, and validation_step() does not take "
                     "dataloader_idx, as it must in Lightning: add it")
    for hook in _HOOKS:
        if overrides(module, hook):
            raise Misuse(f"{type(module).__name__} overrides {hook}(): a worker sees a part of the "
                         "validation data, and sums come from what validation_step() logs of a batch; "
                         "delete it, or switch validation off by limit_val_batches=0")
    return found


def name_of(number: int) -> str | None:
    """The name of an evaluation after the first, as Lightning names what its loader's batches log."""
    return f"dataloader_idx_{number}" if number else None


def score_of(loop: ModuleLoop, dataloader_idx: int | None, batch: Any) -> dict[str, Any]:
    """The score of a batch, in the form that Run.evaluate() takes. `dataloader_idx`: None: there is
    one loader."""
    output, logged = loop.validate(batch, dataloader_idx)
    loss = output.get("loss") if isinstance(output, dict) else output
    if loss is None:
        named = [name for name in logged if name in ("loss", "val_loss", "val/loss")] or \
            [name for name in logged if name.endswith("loss")]
        if not named:
            raise Misuse("validation_step() gave no loss: return it, or log it as val_loss")
        loss = logged.pop(named[0])
    return {**logged, "loss": loss}
