"""Finds the line of the user's code at which something happened."""
from __future__ import annotations

import pathlib
import re
import sys
import traceback
from typing import Any

import torch

# Frames of these mean nothing to the author of the model.
_OF_LIBRARIES = (str(pathlib.Path(torch.__file__).parent), str(pathlib.Path(__file__).parent))


def is_of_user(file: str) -> bool:
    return not file.startswith(_OF_LIBRARIES) and not file.startswith("<")


def line_of_error(error: BaseException) -> str:
    """"model.py, line 12: x = …" of the innermost line outside of torch; empty: there is none."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__)
              if is_of_user(frame.filename)]
    return "" if not frames else (f"{frames[-1].filename}, line {frames[-1].lineno}"
                                  + (f": {frames[-1].line}" if frames[-1].line else ""))


def line_of_caller() -> str:
    """The innermost line outside of torch that is running."""
    frame = sys._getframe(1)  # noqa: SLF001
    while frame is not None and not is_of_user(frame.f_code.co_filename):
        frame = frame.f_back  # type: ignore[assignment]
    return "" if frame is None else f"{frame.f_code.co_filename}, line {frame.f_lineno}"


def line_of_node(node: Any) -> str:
    """The line of Python that made a node of a program; empty if it is not known."""
    found = re.findall(r'File "([^"]+)", line (\d+)', node.meta.get("stack_trace") or "")
    lines = [f"{file}, line {line}" for file, line in found if is_of_user(file)]
    return lines[-1] if lines else ""


def at(line: str) -> str:
    return f" ({line})" if line else ""
