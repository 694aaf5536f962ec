"""validation_step() of a LightningModule, as the evaluation of a run (Run.evaluate())."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._errors import Misuse
from ._module_hooks import overrides

if TYPE_CHECKING:
    from ._module_loop import ModuleLoop

_HOOKS = ("on_validation_start", "on_validation_epoch_start", "on_validation_batch_start",
          "on_validation_batch_end", "on_validation_epoch_end", "on_validation_end")


def validation_data(module: Any, datamodule: Any, options: dict[str, Any]) -> Any:
    """The data for validation_step(); None: there is none, or limit_val_batches=0."""
    if not overrides(module, "validation_step") or options.get("limit_val_batches") in (0, 0.0):
        return None
    data = options.get("val_dataloaders")
    for owner in (datamodule, module):
        if data is None and overrides(owner, "val_dataloader"):
            data = owner.val_dataloader()
    if isinstance(data, (list, tuple)):
        if len(data) > 1:
            raise Misuse(f"{len(data)} validation DataLoaders: a run has one evaluation; concatenate the "
                         "data sets")
        data = data[0] if data else None
    if data is None:
        return None
    for hook in _HOOKS:
        if overrides(module, hook):
            raise Misuse(f"{type(module).__name__} overrides {hook}(): a worker sees a part of the "
                         "validation data, and sums come from what validation_step() logs of a batch; "
                         "delete it, or switch validation off by limit_val_batches=0")
    return data


def score_of(loop: ModuleLoop, batch: Any) -> dict[str, Any]:
    """The score of a batch, in the form that Run.evaluate() takes."""
    output, logged = loop.validate(batch)
    loss = output.get("loss") if isinstance(output, dict) else output
    if loss is None:
        named = [name for name in logged if name in ("loss", "val_loss", "val/loss")] or \
            [name for name in logged if name.endswith("loss")]
        if not named:
            raise Misuse("validation_step() gave no loss: return it, or log it as val_loss")
        loss = logged.pop(named[0])
    return {**logged, "loss": loss}
