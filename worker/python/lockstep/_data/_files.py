"""Files that were opened before a fork.

A fork shares their offsets: if two processes seek and read, one reads at the place of the other. So
Lockstep's own forks open the files again, each at its offset.
"""

from __future__ import annotations

import fcntl
import os
import stat
from typing import NamedTuple

from ._errors import USAGE, DataError

_KEPT = os.O_ACCMODE | os.O_APPEND | os.O_NONBLOCK | os.O_DIRECT | os.O_NOATIME


class OpenFile(NamedTuple):
    """A regular file that is open for reading."""

    descriptor: int
    flags: int
    offset: int
    inode: tuple[int, int]  # and its device

    @property
    def is_there(self) -> bool:
        """False if a thread has closed it since, and perhaps opened another under its number."""
        try:
            return _inode(os.fstat(self.descriptor)) == self.inode
        except OSError:
            return False


def _inode(found: os.stat_result) -> tuple[int, int]:
    return found.st_ino, found.st_dev


def open_files() -> list[OpenFile]:
    """This process's open files, without standard streams and files that are only written."""
    found = []
    for name in os.listdir("/proc/self/fd"):
        descriptor = int(name)
        try:
            flags = fcntl.fcntl(descriptor, fcntl.F_GETFL)
            about = os.fstat(descriptor)
            is_file = stat.S_ISREG(about.st_mode)
            is_read = flags & os.O_ACCMODE != os.O_WRONLY and not flags & os.O_PATH
            if descriptor > 2 and is_file and is_read:
                offset = os.lseek(descriptor, 0, os.SEEK_CUR)
                found.append(OpenFile(descriptor, flags & _KEPT, offset, _inode(about)))
        except OSError:  # listdir() has closed its own descriptor again
            continue
    return found


def _again(file: OpenFile) -> int:
    return os.open(f"/proc/self/fd/{file.descriptor}", file.flags | os.O_CLOEXEC)


def check_files(files: list[OpenFile]) -> None:
    """Raises DataError(64) for one that cannot be opened again."""
    for file in files:
        try:
            os.close(_again(file))
        except OSError as error:
            if not file.is_there:
                continue
            path = os.readlink(f"/proc/self/fd/{file.descriptor}")
            raise DataError(
                USAGE,
                f"the script has opened {path}, which cannot be opened again ({error.strerror}), so "
                "data processes would share its offset; open it in __getitem__ when it is first "
                "needed, or take workers=0",
            ) from error


def open_again(files: list[OpenFile]) -> None:
    """After a fork, in the child: the same descriptors, with offsets of their own."""
    for file in files:
        if not file.is_there:
            continue
        fresh = _again(file)
        os.lseek(fresh, file.offset, os.SEEK_SET)
        os.dup2(fresh, file.descriptor, os.get_inheritable(file.descriptor))
        os.close(fresh)
