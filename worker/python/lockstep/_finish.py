"""How long a run is, and the end that its script gives it: run.finish().

The core counts (worker/script/script_engine.h): in the loop's body the run ends with the step in work
if all its slots say so, whichever worker has them; in update=, in after_step= and between two epochs
every worker does the same, so the run ends with the step that is applied.
"""
from __future__ import annotations

from ._core import Core
from ._epochs import Epochs
from ._errors import Misuse
from ._phases import Phases


class Finishing:
    """Whether the script asked for the run's end while it works on an order. Main thread only."""

    def __init__(self) -> None:
        self._is_open = False
        self._is_asked = False

    def opens(self) -> None:
        self._is_open, self._is_asked = True, False

    def ask(self) -> bool:
        """False: a script cannot ask now."""
        self._is_asked = self._is_open
        return self._is_open

    def closes(self) -> bool:
        """Whether it was asked since opens()."""
        self._is_open = False
        return self._is_asked


class Finishes:
    """The part of a Run that says how long it is."""

    _core: Core
    _job: dict[str, str]
    _finishing: Finishing
    _epochs: Epochs | None
    _phases: Phases
    _steps_per_epoch: int | None = None  # until the data are known

    @property
    def steps_per_epoch(self) -> int:
        """The last step of an epoch may have fewer samples. Known in the loop."""
        if self._steps_per_epoch is None:
            raise Misuse("run.steps_per_epoch is known in the loop, where the data are; before it, "
                         "-(-len(data) // global_batch) is the same number")
        return self._steps_per_epoch

    @property
    def total_steps(self) -> int:
        """The number of steps by train.epochs and train.max_steps; run.finish() or train.patience
        may end the run earlier. With train.epochs it is known in the loop."""
        epochs, turns = int(self._job["epochs"]), self._phases.count
        most = -(-int(self._job["max_steps"]) // turns) * turns  # a batch that has begun is finished
        if epochs == 0:
            return most
        steps = epochs * self.steps_per_epoch
        return min(steps, most) if most else steps

    def finish(self) -> None:
        """Ends the run as complete: with its evaluation, summary and final checkpoint.

        In the loop's body with the step in work, if every slot of that step calls it; in update= and
        after_step= with the step that is applied; between two epochs where it stands. In a loop with
        phases the run goes on to the end of the batch. So decide by values that all workers know:
        run.step, run.last. Has no effect in the trial.
        """
        self._check_process()
        if self.is_trial:
            return
        if not self._finishing.ask():
            raise Misuse("run.finish() belongs into the loop's body, between two epochs, or into update= "
                         "or after_step=, where it says with which step the run ends")
        if self._epochs is not None:
            self._epochs.finishes()
