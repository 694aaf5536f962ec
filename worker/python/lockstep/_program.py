"""The command `lockstep` of the wheel: becomes the program inside the package, whose scripts run in
this Python."""
import os
import pathlib
import sys


def main() -> None:
    program = os.fspath(pathlib.Path(__file__).with_name("bin") / "lockstep")
    os.environ["LOCKSTEP_PYTHON"] = sys.executable
    os.execv(program, [program, *sys.argv[1:]])
