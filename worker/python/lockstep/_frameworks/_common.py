"""Parts that both frameworks need."""
from __future__ import annotations

import contextlib
import fcntl
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Callable, Iterator

from .._data import unpack
from .._device import Sender
from .._errors import Misuse

if TYPE_CHECKING:
    from .._run import Run


def run_for(who: str) -> Run:
    """The run that the script has started."""
    from .._start import started

    run = started()
    if run is None:
        raise Misuse(f"{who} came before lockstep.start(), which seeds the process; call it before "
                     "the model is made")
    return run


def mover(run: Run) -> Callable[[Any], Any]:
    """Brings a batch to the run's device. Nothing waits for it: the copy has a stream of its own, and
    earlier computation may still run."""
    if run._device.is_host:
        return lambda batch: batch
    sender = Sender(run._device)
    return lambda batch: sender.arrived(sender.send(batch))


@dataclass(frozen=True)
class Length:
    """How long a run is. Depends on the number of samples alone."""

    steps_per_epoch: int
    steps: int

    @staticmethod
    def of(run: Run, data: Any, collate: Callable[..., Any] | None = None) -> Length:
        job = run._job
        samples = unpack(data, collate).samples
        per_epoch = -(-samples // int(job["global_batch"]))
        epochs, most = int(job["epochs"]), int(job["max_steps"])
        by_epochs = epochs * per_epoch or most
        return Length(per_epoch, min(by_epochs, most or by_epochs))

    def epoch_of(self, step: int) -> int:
        return step // self.steps_per_epoch

    def check(self, asked: int | None, who: str) -> None:
        """`asked`: steps that the framework was told to make; None: it was told nothing."""
        if asked is not None and asked != self.steps:
            raise Misuse(f"{who} would make {asked} steps, and the job makes {self.steps} of "
                         f"{self.steps_per_epoch} in an epoch; write the same into train.epochs or "
                         "train.max_steps of the job")


@contextlib.contextmanager
def one_at_a_time() -> Iterator[None]:
    """Lets workers of a machine that run the same script enter one after the other.

    For work that a framework does in one process only, such as a download: the second finds it
    done.
    """
    script = getattr(sys.modules.get("__main__"), "__file__", None)
    with contextlib.ExitStack() as stack:
        if script is not None:
            file = stack.enter_context(open(script, "rb"))
            with contextlib.suppress(OSError):  # a file system without locks
                fcntl.flock(file, fcntl.LOCK_EX)
        yield


def refuse(owner: str, found: Callable[[str, Any], Any], rules: dict[str, tuple[Any, str]]) -> None:
    """Raises Misuse for the first setting that has none of its allowed values.

    `rules`: by name, the allowed values, with the default first, and why no other is allowed.
    """
    for name, (allowed, why) in rules.items():
        value = found(name, allowed[0])
        if not any(value is a or (type(value) is type(a) and value == a) for a in allowed):
            raise Misuse(f"{owner}({name}={value!r}): {why}")
