"""The command `lockstep` of the wheel: executes the program inside the package, which runs scripts
in this Python."""
import os
import pathlib
import sys


def main() -> None:
    program = os.fspath(pathlib.Path(__file__).with_name("bin") / "lockstep")
    os.environ["LOCKSTEP_PYTHON"] = sys.executable
    os.execv(program, [program, *sys.argv[1:]])
