"""Options of Lightning's Trainer in lockstep.fit(): which ones it obeys, which ones change nothing,
and why it refuses the others."""
from __future__ import annotations

from typing import Any

import torch

from .._errors import Misuse
from ._common import refuse

_WORKERS = "`lockstep run --workers N` says how many processes train"
_LENGTH = "train.epochs and train.max_steps of the job say how long it is"
_PART = "every sample counts once an epoch; give fit() a smaller data set"
_VALIDATION = "a run evaluates at the end of every epoch, and as eval.every_steps of the job says"

# The default first.
_RULES: dict[str, tuple[Any, str]] = {
    "strategy": (("auto",), "Lockstep sums the gradients itself, and keeps parameters whole"),
    "devices": (("auto", 1), _WORKERS),
    "num_nodes": ((1,), _WORKERS),
    "accumulate_grad_batches": ((1,), "a step has train.global_batch samples in train.slots slots, "
                                      "whatever the number of workers"),
    "callbacks": ((None,), "callbacks of Lightning need its Trainer; override the module's hooks"),
    "logger": ((None, False), "hand what is logged on in run.on_log(), which the writer calls"),
    "enable_checkpointing": ((None, False), "Lockstep writes checkpoints (checkpoint.every_steps)"),
    "ckpt_path": ((None,), "`lockstep run --resume` goes on with a run"),
    "fast_dev_run": ((False,), "`python train.py` with train.max_steps tries a script"),
    "min_epochs": ((None,), _LENGTH),
    "min_steps": ((None,), _LENGTH),
    "max_time": ((None,), _LENGTH),
    "limit_train_batches": ((None, 1.0), _PART),
    "overfit_batches": ((0.0, 0), _PART),
    "limit_val_batches": ((None, 1.0, 0, 0.0), "an evaluation takes every sample once; 0 leaves it out"),
    "val_check_interval": ((None,), _VALIDATION),
    "check_val_every_n_epoch": ((1, None), _VALIDATION),
    "profiler": ((None,), "`lockstep top` shows where steps spend their time"),
    "detect_anomaly": ((False,), "call torch.autograd.set_detect_anomaly(True)"),
    "plugins": ((None,), "they belong to Lightning's Trainer"),
    "sync_batchnorm": ((False,), "Lockstep averages the statistics of BatchNorm over the step"),
    "reload_dataloaders_every_n_epochs": ((0,), "the data of a run are declared once"),
}
# They change neither the weights nor a run's promises.
_IDLE = {"enable_progress_bar", "enable_model_summary", "enable_autolog_hparams", "benchmark",
         "deterministic", "inference_mode", "barebones", "log_every_n_steps", "default_root_dir",
         "num_sanity_val_steps", "limit_test_batches", "limit_predict_batches",
         "use_distributed_sampler", "weights_only"}
_OURS = {"max_epochs", "max_steps", "val_dataloaders"}


def check_options(given: dict[str, Any], device: torch.device) -> None:
    """Raises Misuse, or TypeError for an option that Lightning does not have. `device`: the run's."""
    names = ("cpu",) if device.type == "cpu" else ("gpu", "cuda")
    rules = {**_RULES, "accelerator": (("auto", *names), "cluster.device of the job says what computes")}
    unknown = sorted(given.keys() - rules.keys() - _IDLE - _OURS)
    if unknown:
        raise TypeError(f"fit() got an unexpected keyword argument {unknown[0]!r}")
    refuse("lockstep.fit", given.get, rules)


def steps_of(given: dict[str, Any], steps_per_epoch: int) -> int | None:
    """How many steps max_epochs and max_steps ask for; None: any number."""
    epochs, steps = given.get("max_epochs"), given.get("max_steps")
    limits = [] if epochs in (None, -1) else [epochs * steps_per_epoch]
    limits += [] if steps in (None, -1) else [steps]
    return min(limits, default=None)


def precision_of(precision: Any) -> str:
    """"32-true" or "bf16-mixed"."""
    if precision in (None, 32, "32", "32-true"):
        return "32-true"
    if precision in ("bf16", "bf16-mixed"):
        return "bf16-mixed"
    raise Misuse(f"lockstep.fit(precision={precision!r}): it is \"32-true\" or \"bf16-mixed\"; for "
                 "others write the loop with run.batches() (SCRIPTS.md)")
