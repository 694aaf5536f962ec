"""Runs each of its words, a script with words of its own, by itself, in a process forked from this one,
which has torch already; writes SCRIPT.out with what it printed, and prints their exit codes."""
import os
import runpy
import shlex
import sys
import traceback

import torch._dynamo  # noqa: F401 (what the first optimizer would import)

import lockstep  # noqa: F401
from lockstep import _run  # noqa: F401


def run(path, *words):
    out = os.open(path + ".out", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    os.dup2(out, 1)
    os.dup2(out, 2)
    sys.argv = [path, *words]
    sys.path[0] = os.path.dirname(path)
    sys.modules["__main__"].__file__ = path
    code = 0
    try:
        runpy.run_path(path, run_name="__main__")
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 1
    except BaseException:
        traceback.print_exc()
        code = 1
    from lockstep._start import started
    if started() is not None:
        started().abandon()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


codes = []
for command in sys.argv[1:]:
    pid = os.fork()
    if pid == 0:
        run(*shlex.split(command))
    codes.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
print("codes", *codes)
