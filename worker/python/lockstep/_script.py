"""Runs a script as __main__, from its first line to its end, and turns its end into a message to
the run and an exit code:

    ended by itself after its loop        0
    stopped, left out                     75, 0 (SystemExit, so `finally` runs)
    an exception in the loop's body       70: restarted, and the samples in hand are told; 64 if
                                          two slots of a step raise the same (_errors.is_of_script)
    an exception while a step is applied  64: every worker does the same there
    an exception before the worker has    64: every attempt would end so; 70 if the machine is
    registered, no start(), a loop left       short of something
    by break or exit, misuse
"""
from __future__ import annotations

import ast
import faulthandler
import importlib.util
import os
import sys
import traceback
import types
from importlib.machinery import ModuleSpec

from ._code import CODE, is_installed
from ._errors import CONFIG, INTERNAL, USAGE, LockstepError, hint_of, is_of_machine

_NO_TERMINAL = ("lockstep: breakpoint() in a worker, which has no terminal: debug with "
                "`python {script}`, which computes the same, or attach debugpy; it goes on")


def _folder_of(module: str, path: str) -> str:
    """The folder that holds the module's package."""
    folder = os.path.dirname(path)
    if os.path.basename(path) == "__main__.py" and not module.endswith(".__main__"):
        folder = os.path.dirname(folder)
    for _ in range(module.count(".")):
        folder = os.path.dirname(folder)
    return folder


def _spec_of(module: str, path: str) -> ModuleSpec:
    """Imports the packages around the module, as `python -m` does."""
    folder = _folder_of(module, path)
    CODE.belongs_to(module.partition(".")[0], folder)
    if not is_installed(folder):  # where other libraries are, too, which do not come before Python's own
        sys.path.insert(0, folder)
    spec = importlib.util.find_spec(module)
    if spec is not None and spec.submodule_search_locations is not None:
        spec = importlib.util.find_spec(module + ".__main__")
    if spec is None or spec.origin is None or not os.path.samefile(spec.origin, path):
        found = "nothing" if spec is None else spec.origin
        raise LockstepError(f"the run trains the module {module} of {path}, and this Python finds "
                            f"{found} by that name; let PYTHONPATH and the installed packages name "
                            "one package so, on every machine", CONFIG)
    return spec


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


def _run_script(module: str | None, path: str) -> None:
    """Runs it in the module __main__, so that pickle finds what the script defines there."""
    spec = None if module is None else _spec_of(module, path)
    with open(path, "rb") as file:
        text = file.read()
    CODE.note_file(path, text)
    tree = compile(text, path, "exec", ast.PyCF_ONLY_AST, dont_inherit=True)
    if spec is not None:
        package = spec.parent
    else:
        package, folder = _package_of(path, tree)
        CODE.belongs_to(package and package.partition(".")[0], folder)
        sys.path.insert(0, folder)
    main = sys.modules["__main__"].__dict__
    kept = {key: main[key] for key in ("__builtins__",)}
    main.clear()
    main.update(kept, __name__="__main__", __file__=path, __doc__=None, __package__=package,
                __spec__=spec, __loader__=spec and spec.loader, __cached__=spec and spec.cached)
    code = compile(tree, path, "exec", dont_inherit=True)
    exec(code, main)  # noqa: S102: the user's own script


def _end_of(error: BaseException | None) -> int:
    from ._start import started

    run = started()
    if run is not None:
        return run.end(error)
    if error is None:
        print("lockstep: the script ended and never called lockstep.start(); a script that `lockstep "
              "run` starts has to", file=sys.stderr)
    elif (hint := hint_of(error)) is not None:
        print(f"lockstep: {hint}", file=sys.stderr)
    code = getattr(error, "code", None)
    is_ours = type(error).__module__.startswith("lockstep.") and isinstance(code, int)
    return code if is_ours else INTERNAL if is_of_machine(error) else USAGE


def _without_ours(trace: types.TracebackType | None) -> types.TracebackType | None:
    """Cuts the frames above the script's own: this file, and Python's import of packages."""
    while trace is not None and (trace.tb_frame.f_code.co_filename == __file__ or
                                 trace.tb_frame.f_globals.get("__name__", "").startswith("importlib.")):
        trace = trace.tb_next
    return trace


def run(words: list[str]) -> int:
    """`words`: the script and its arguments; before them -m and its name, if it is a module."""
    module, words = (words[1], words[2:]) if words[0] == "-m" else (None, words)
    script = words[0]
    sys.argv = words
    faulthandler.enable()
    how = script if module is None else f"-m {module}"
    sys.breakpointhook = lambda *_, **__: print(_NO_TERMINAL.format(script=how), file=sys.stderr)
    error: BaseException | None = None
    try:
        _run_script(module, os.path.abspath(script))
    except SystemExit as ended:
        error = ended
        if ended.code is not None and not isinstance(ended.code, int):
            print(ended.code, file=sys.stderr)
    except BaseException as failed:  # noqa: B902: whatever ends a script is told
        error = failed
        traceback.print_exception(type(failed), failed, _without_ours(failed.__traceback__))
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
