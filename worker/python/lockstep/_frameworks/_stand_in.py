"""A LightningModule's self.trainer: tells how far the run is, and refuses all else by name."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._errors import Misuse
from ._common import Length

if TYPE_CHECKING:
    from .._run import Run

_RANKS = "a worker has no rank of its own: it may compute any slot, and the weights must not depend on it"
_METRICS = ("only the run as a whole knows its metrics; `lockstep status` and /metrics show those that "
            "training_step() logs")
_NOT_YET = "the data say how long the run is; ask in configure_optimizers() or later"
_NOT_HERE = {
    **dict.fromkeys(("length", "estimated_stepping_batches", "max_steps", "num_training_batches",
                     "max_epochs"), _NOT_YET),
    **dict.fromkeys(("global_rank", "local_rank", "node_rank", "world_size", "num_devices", "num_nodes", "device_ids"), _RANKS),
    **dict.fromkeys(("callback_metrics", "logged_metrics", "progress_bar_metrics"), _METRICS),
    "strategy": "Lockstep sums gradients, and a slot needs nothing of the others",
    "save_checkpoint": "Lockstep writes checkpoints (checkpoint.every_steps)",
    "fit_loop": "the loop is Lockstep's",
}


class StandIn:
    """The trainer of a module in lockstep.fit(). Raises Misuse if a run cannot answer."""

    training = True
    validating = testing = predicting = sanity_checking = evaluating = barebones = False
    fast_dev_run = False
    accumulate_grad_batches = 1
    logger = log_dir = checkpoint_callback = progress_bar_callback = None

    length: Length

    def __init__(self, run: Run):
        self._run = run
        self._stops = False
        self.current_epoch = 0
        self.global_step = 0
        self.gradient_clip_val: Any = None
        self.gradient_clip_algorithm: Any = None
        self.precision = "32-true"
        self.datamodule: Any = None
        self.optimizers: list[Any] = []
        self.lr_scheduler_configs: list[Any] = []
        self.loggers: list[Any] = []
        self.callbacks: list[Any] = []

    def measure(self, length: Length) -> None:
        """Sets the length of the run, once the data are known."""
        self.length = length
        self.estimated_stepping_batches = self.max_steps = length.steps
        self.num_training_batches = length.steps_per_epoch
        self.max_epochs = -(-length.steps // length.steps_per_epoch)

    @property
    def is_global_zero(self) -> bool:
        """True in the writer: one worker at a time, and another if it dies."""
        return self._run.is_writer

    @property
    def should_stop(self) -> bool:
        return self._stops

    @should_stop.setter
    def should_stop(self, stops: bool) -> None:
        """Votes for the end: the run ends when all workers with slots have asked."""
        self._stops = bool(stops)
        if self._stops:
            self._run.request_stop()

    def __getattr__(self, name: str) -> Any:
        why = _NOT_HERE.get(name)
        if why is not None:  # an AttributeError would be hidden by Module.__getattr__
            raise Misuse(f"self.trainer.{name}: {why}")
        raise AttributeError(f"self.trainer.{name}: under lockstep.fit() a module's trainer knows "
                             "how far the run is, and no more")
