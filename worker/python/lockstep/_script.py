"""A script from its first line to its end. Runs it as __main__, and turns its end into what the run
has to know and an exit code:

    ended by itself behind its loop       0
    stopped, left out                     75, 0 (SystemExit, so `finally` runs)
    an exception in the loop's body       70: restarted, and the samples in hand are told
    an exception while a step is applied  64: every worker does the same there
    an exception before the worker has    64: every attempt would end so; 70 if the machine is
    registered, no start(), a loop left       short of something
    by break or exit, misuse
"""
from __future__ import annotations

import ast
import faulthandler
import os
import sys
import traceback

from ._code import CODE
from ._errors import INTERNAL, USAGE, is_of_machine

_NO_TERMINAL = ("lockstep: breakpoint() in a worker, which has no terminal: debug with "
                "`python {script}`, which computes the same, or attach debugpy; it goes on")


def _package_of(path: str, tree: ast.Module) -> tuple[str | None, str]:
    """The package of a script that imports relatively, as `python -m` starts it, and the folder that
    holds the package; of any other script None and its own folder."""
    folder = os.path.dirname(path)
    if not any(isinstance(node, ast.ImportFrom) and node.level for node in ast.walk(tree)):
        return None, folder
    names: list[str] = []
    while os.path.exists(os.path.join(folder, "__init__.py")):
        folder, name = os.path.split(folder)
        names.insert(0, name)
    return ".".join(names) or None, folder


def _run_script(path: str) -> None:
    """In the module __main__, so that what the script defines there can be pickled."""
    with open(path, "rb") as file:
        text = file.read()
    CODE.note_file(path, text)
    tree = compile(text, path, "exec", ast.PyCF_ONLY_AST, dont_inherit=True)
    package, sys.path[0] = _package_of(path, tree)
    main = sys.modules["__main__"].__dict__
    kept = {key: main[key] for key in ("__builtins__",)}
    main.clear()
    main.update(kept, __name__="__main__", __file__=path, __doc__=None, __package__=package,
                __spec__=None, __loader__=None, __cached__=None)
    code = compile(tree, path, "exec", dont_inherit=True)
    exec(code, main)  # noqa: S102: the user's own script


def _end_of(error: BaseException | None) -> int:
    from ._start import started

    run = started()
    if run is not None:
        return run.finish(error)
    if error is None:
        print("lockstep: the script ended and never called lockstep.start(); a script that `lockstep "
              "run` starts has to", file=sys.stderr)
    code = getattr(error, "code", None)
    is_ours = type(error).__module__.startswith("lockstep.") and isinstance(code, int)
    return code if is_ours else INTERNAL if is_of_machine(error) else USAGE


def run(words: list[str]) -> int:
    """`words`: the script and its arguments."""
    script = words[0]
    sys.argv = words
    sys.path.insert(0, os.path.dirname(os.path.abspath(script)))
    faulthandler.enable()
    sys.breakpointhook = lambda *_, **__: print(_NO_TERMINAL.format(script=script),
                                                file=sys.stderr)
    error: BaseException | None = None
    try:
        _run_script(os.path.abspath(script))
    except SystemExit as ended:
        error = ended
        if ended.code is not None and not isinstance(ended.code, int):
            print(ended.code, file=sys.stderr)
    except BaseException as failed:  # noqa: B902: whatever ends a script is told
        error = failed
        trace = failed.__traceback__
        while trace is not None and trace.tb_frame.f_code.co_filename == __file__:
            trace = trace.tb_next  # what comes before the script's own lines
        traceback.print_exception(type(failed), failed, trace)
    try:
        return _end_of(error)
    except BaseException:  # threads of the run may live: the interpreter would wait for them
        traceback.print_exc()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(INTERNAL)


def start_main() -> None:
    """The words of the command line name the script. The agent starts `python -c` with this function
    (deploy/agent/worker_launch.cc), and without the working directory in sys.path."""
    sys.exit(run(sys.argv[1:]))
