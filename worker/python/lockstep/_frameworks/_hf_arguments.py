"""TrainingArguments that a run cannot honour, or that its job sets."""
from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch

from .._errors import Misuse
from ._common import Length, refuse

if TYPE_CHECKING:
    from .._run import Run

_BATCH = ("a step has train.global_batch samples in train.slots slots, whatever the number of workers; "
          "leave it out")
_EVALUATION = ("a run evaluates at the end of every epoch, and as eval.every_steps of the job says; write "
               "eval_strategy=\"epoch\"")
_BEST = "checkpoint.best of the job says which checkpoint is kept"
_PARALLEL = "Lockstep sums the gradients itself, and keeps parameters whole"
_COUNTS = "every sample counts once an epoch"

# The default first.
_RULES: dict[str, tuple[Any, str]] = {
    "fsdp": ((None, "", [], False), _PARALLEL),
    "deepspeed": ((None,), _PARALLEL),
    "parallelism_config": ((None,), _PARALLEL),
    "gradient_accumulation_steps": ((1,), _BATCH),
    "auto_find_batch_size": ((False,), _BATCH),
    "fp16": ((False,), "bf16=True needs no scaling of the loss"),
    "torch_compile": ((False,), "give the Trainer a model whose parts are compiled"),
    "group_by_length": ((False,), "the job's seed orders the samples"),
    "train_sampling_strategy": (("random",), "the job's seed orders the samples"),
    "dataloader_drop_last": ((False,), f"{_COUNTS}, and the last step is a short one"),
    "dataloader_multiprocessing_context": ((None, "fork"), "data processes are forked before the run "
                                                           "starts threads"),
    "ignore_data_skip": ((False,), f"a resume goes on with the next sample: {_COUNTS}"),
    "eval_strategy": (("no", "epoch"), _EVALUATION),
    "eval_on_start": ((False,), "the first evaluation is at the end of the first epoch"),
    "load_best_model_at_end": ((False,), _BEST),
    "enable_jit_checkpoint": ((False,), "Lockstep writes a checkpoint when a run is stopped"),
    "include_num_input_tokens_seen": (("no", False), "a worker sees the tokens of its slots only"),
    "push_to_hub": ((False,), "every worker would push; call push_to_hub() in a process of its own"),
    "full_determinism": ((False,), "comm.numerics says so: exact is the default"),
    "optim": (("adamw_torch_fused", "adamw_torch", "sgd", "adagrad", "rmsprop", "adafactor"),
              "Lockstep keeps optimizers of torch, and Adafactor; pass another as optimizers="),
}


def check_arguments(args: Any, run: Run) -> None:
    """Raises Misuse for the first argument that does not fit the run."""
    refuse("TrainingArguments", lambda name, default: _plain(getattr(args, name, default)), _RULES)
    if _plain(getattr(args, "save_strategy", "no")) == "best":
        raise _refused(args, "save_strategy", _BEST)
    if args.seed != run.seed or args.data_seed not in (None, run.seed):
        name = "seed" if args.seed != run.seed else "data_seed"
        raise _refused(args, name, f"the job's seed is {run.seed}, and orders the samples; write the "
                                   f"same into both (`# seed: {getattr(args, name)}` in the block, or "
                                   "seed=run.seed)")
    per_slot = -(-int(run._job["global_batch"]) // int(run._job["slots"]))
    if args.per_device_train_batch_size not in (8, per_slot):  # 8 is the default
        raise _refused(args, "per_device_train_batch_size", f"a slot has {per_slot} samples: {_BATCH}")


def check_length(args: Any, length: Length) -> None:
    """The Trainer's schedule must end where the run does."""
    steps = args.max_steps if args.max_steps > 0 else \
        math.ceil(args.num_train_epochs * length.steps_per_epoch)
    length.check(steps, f"TrainingArguments(num_train_epochs={args.num_train_epochs}, "
                        f"max_steps={args.max_steps})")


def compute_on(args: Any, device: torch.device) -> None:
    """The Trainer computes on the run's device, whatever else transformers has found."""
    if device.type != "cpu" and args.use_cpu:
        raise _refused(args, "use_cpu", "cluster.device of the job is cuda; leave out one of the two")
    args.__dict__["_setup_devices"] = args.distributed_state.device = device  # what args.device gives
    args._n_gpu = 0 if device.type == "cpu" else 1


def _plain(value: Any) -> Any:
    """The text of an enum's member."""
    return getattr(value, "value", value)


def _refused(args: Any, name: str, why: str) -> Misuse:
    return Misuse(f"TrainingArguments({name}={_plain(getattr(args, name))!r}): {why}")
