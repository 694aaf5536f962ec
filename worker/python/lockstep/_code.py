"""The code of a script, as this process runs it: its file, and the modules below its folder.

A worker that is started later imports what lies there then. Its hash shows a file that was edited
meanwhile, so the run does not train with two versions of its code.
"""
from __future__ import annotations

import hashlib
import os
import sys
import sysconfig

_INSTALLED = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")


class Code:
    """note() early and often: what is hashed should be what was imported."""

    def __init__(self) -> None:
        self._files: dict[str, str] = {}  # path → hash

    def note_file(self, path: str, text: bytes) -> None:
        """`text`: of the file, as it runs."""
        self._files.setdefault(os.path.abspath(path), _hash(text))

    def note(self, script: str) -> None:
        """Reads the script's file, and the modules below its folder, that are not noted yet."""
        for path in [os.path.abspath(script), *_modules_below(os.path.dirname(script))]:
            if path not in self._files:
                self._files[path] = _hash_of_file(path)

    def hash(self, script: str) -> str:
        """The same on every node, wherever the folder lies there."""
        self.note(script)
        folder = os.path.dirname(os.path.abspath(script))
        lines = sorted(f"{os.path.relpath(path, folder)} {text}"
                       for path, text in self._files.items())
        return _hash("\n".join(lines).encode("utf-8", "surrogateescape"))


def _modules_below(folder: str) -> list[str]:
    """Files of imported modules. Libraries that are installed there (a virtual environment) and
    Lockstep's own do not count."""
    begin = os.path.join(os.path.abspath(folder), "")
    own = os.path.join(os.path.dirname(os.path.abspath(__file__)), "")
    library = tuple(os.path.join(path, "") for name in ("stdlib", "platstdlib")
                    if (path := sysconfig.get_path(name)))
    found = []
    for module in list(sys.modules.values()):
        path = getattr(module, "__dict__", {}).get("__file__")
        if not isinstance(path, str) or not (path := os.path.abspath(path)).startswith(begin):
            continue
        if not path.startswith((own, *library)) and not any(part in path for part in _INSTALLED):
            found.append(path)
    return found


def _hash_of_file(path: str) -> str:
    try:
        with open(path, "rb") as file:
            return _hash(file.read())
    except OSError:
        return "gone"


def _hash(text: bytes) -> str:
    return hashlib.blake2b(text, digest_size=16).hexdigest()


CODE = Code()  # of the process, as sys.modules is
