"""The beginning of a run: which worker this process is, and its job."""
from __future__ import annotations

import atexit
import gc
import multiprocessing
import os
import pathlib
import shutil
import subprocess
import sys

from . import _numerics, _seeds, _stacks
from ._code import CODE
from ._core import Core, CoreError
from ._errors import CONFIG, LockstepError, Misuse
from ._waits import WAITS

_WORKER = "LOCKSTEP_WORKER"
_REPLAY = "LOCKSTEP_REPLAY"  # a file: `lockstep replay` started the script
_started = None
_MARK = "__lockstep_run__"  # in the __main__ that has called start(): IPython's %run makes a new one


def _script() -> str | None:
    path = getattr(sys.modules.get("__main__"), "__file__", None)
    return os.path.abspath(path) if path else None


def native_program(name: str) -> str:
    """`name` of the installation that this package belongs to, else of the PATH."""
    here = pathlib.Path(__file__).resolve().parent
    for folder in (here / "bin", here.parent.parent):
        if (folder / name).exists():
            return os.fspath(folder / name)
    found = shutil.which(name)
    if found is None:
        raise LockstepError(f"the program `{name}` was not found beside this package nor in the "
                            "PATH; build Lockstep (deploy/quickstart.sh), or install its wheel",
                            CONFIG)
    return found


def _job_of_alone(script: str | None) -> bytes:
    if script is None:
        raise Misuse("a run's job stands in its script, and an interactive Python has none; write "
                     "the loop into a file and start it with `python FILE.py`")
    done = subprocess.run([native_program("lockstep"), "resolve", "--protobuf", script,
                           "cluster.workers=1"], capture_output=True, check=False)
    if done.returncode != 0:
        text = done.stderr.decode(errors="replace").strip()
        raise LockstepError(text or "lockstep resolve failed", done.returncode)
    return done.stdout


def _refuse_other_launchers() -> None:
    # True in a child by spawn, while it runs the script's top level.
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        raise Misuse("start() in a process that multiprocessing has started: a child by spawn runs the "
                     "script's top level again; put start() and what follows under "
                     "`if __name__ == \"__main__\":`")
    if "TORCHELASTIC_RUN_ID" in os.environ:
        raise Misuse("start() under torchrun: Lockstep starts the workers itself; use `lockstep run "
                     "train.py --workers N`, or mpirun or srun with `lockstep agent train.py`")
    distributed = sys.modules.get("torch.distributed")
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        raise Misuse("torch.distributed is initialised: Lockstep sums the gradients itself; leave "
                     "out init_process_group() and DistributedDataParallel")


def _end_former(run) -> None:
    """Raises Misuse unless another script has begun in this process: IPython's %run."""
    if vars(sys.modules["__main__"]).get(_MARK) is run:
        raise Misuse("start() was called before: a process is one worker of one run")
    run.give_way()


def _say_made_before() -> None:
    """start() seeds the generators: a model that was drawn before differs in each process."""
    torch = sys.modules.get("torch")
    parameter = getattr(getattr(torch, "nn", None), "Parameter", None)
    if parameter is None:
        return
    count = sum(issubclass(type(found), parameter) for found in gc.get_objects())
    if count:
        print(f"lockstep: {count} parameters were made before lockstep.start(), which seeds the "
              "generators, so each process may have drawn other values; call start() before the "
              "model is made, or load it from a file afterwards", file=sys.stderr)


def start_run():
    """See lockstep.start()."""
    global _started
    if _started is not None:
        _end_former(_started)
    _refuse_other_launchers()
    if _started is None:
        _say_made_before()
    script = _script()
    if script is not None:
        CODE.note(script)
    worker = os.environ.pop(_WORKER, None)  # processes that the script starts are no workers
    replay = os.environ.pop(_REPLAY, None)
    has_job = worker is not None or replay is not None
    try:
        core = Core(worker, b"" if has_job else _job_of_alone(script), replay)
    except CoreError as why:
        raise LockstepError(str(why), why.code) from None
    job = core.job
    WAITS.begin(job["script_log"])
    _stacks.answer(int(job["stack_memory"]))
    _numerics.prepare(int(job["threads"]), job["exact"] == "1")
    import torch

    from ._device import open_device

    device = open_device(job)
    device.prepare(job["exact"] == "1")
    torch.manual_seed(int(job["seed"]))
    _seeds.seed_all(_seeds.fold(int(job["seed"])))
    from ._run import Run

    _started = Run(core, device, is_worker=worker is not None, script=script)
    vars(sys.modules["__main__"])[_MARK] = _started
    if worker is None:
        atexit.register(_started.at_exit)  # of a worker, _script.py knows how the script ended
    return _started


def started():
    """The run of this process; None: start() was not called."""
    return _started
