"""The code of a script, as this process runs it: its file, and the modules below its folder. The folder
of a script in a package is the folder that holds the package.

A worker that starts later imports the files as they are then. Its hash shows if one was edited
meanwhile, so the run does not train with two versions of its code.
"""
from __future__ import annotations

import hashlib
import os
import sys
import sysconfig

_INSTALLED = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")


def is_installed(path: str) -> bool:
    """Whether `path` lies among the libraries of a Python."""
    return any(part in os.path.join(path, "") for part in _INSTALLED)


class Code:
    """Call note() early and often, so that it hashes the files as they were imported."""

    def __init__(self) -> None:
        self._files: dict[str, str] = {}  # path → hash
        self._folder: str | None = None  # None: the script's own
        self._package: str | None = None

    def belongs_to(self, package: str | None, folder: str) -> None:
        """`folder` holds the script, or its top-level `package`."""
        self._package, self._folder = package, os.path.abspath(folder)

    def note_file(self, path: str, text: bytes) -> None:
        """`text`: the file's text, as it runs."""
        self._files.setdefault(os.path.abspath(path), _hash(text))

    def note(self, script: str) -> None:
        """Reads the script's file, and the modules below its folder, that are not noted yet."""
        below = _modules_below(self._folder_of(script), self._package)
        for path in [os.path.abspath(script), *below]:
            if path not in self._files:
                self._files[path] = _hash_of_file(path)

    def _folder_of(self, script: str) -> str:
        return self._folder or os.path.dirname(os.path.abspath(script))

    def hash(self, script: str) -> str:
        """The same on every node, wherever the folder lies there."""
        self.note(script)
        folder = self._folder_of(script)
        lines = sorted(f"{os.path.relpath(path, folder)} {text}"
                       for path, text in self._files.items())
        return _hash("\n".join(lines).encode("utf-8", "surrogateescape"))


def _modules_below(folder: str, package: str | None) -> list[str]:
    """Files of imported modules. Libraries that are installed there (a virtual environment) and
    Lockstep's own do not count, except the script's own `package`."""
    begin = os.path.join(os.path.abspath(folder), "")
    own = os.path.join(os.path.dirname(os.path.abspath(__file__)), "")
    library = tuple(os.path.join(path, "") for name in ("stdlib", "platstdlib")
                    if (path := sysconfig.get_path(name)))
    found = []
    for name, module in list(sys.modules.items()):
        path = getattr(module, "__dict__", {}).get("__file__")
        if not isinstance(path, str) or not (path := os.path.abspath(path)).startswith(begin):
            continue
        is_own = package is not None and name.split(".")[0] == package
        if is_own or not (path.startswith((own, *library)) or is_installed(path)):
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
