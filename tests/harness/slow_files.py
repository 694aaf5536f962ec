"""Mounts a directory read-only elsewhere. Every read takes a while and reads wait for each other,
as on a slow disk: slow_files.py DIRECTORY MOUNT_POINT SECONDS

Prints "mounted" when it is ready. Ends when it is unmounted, or with its parent.
"""
import ctypes
import errno
import os
import pathlib
import signal
import sys
import time

import fusepy as fuse


class SlowFiles(fuse.Operations):
    def __init__(self, directory, read_s):
        self.directory = pathlib.Path(directory).resolve()
        self.read_s = read_s

    def init(self, path):
        print("mounted", flush=True)

    def _path(self, path):
        return self.directory / path.lstrip("/")

    def getattr(self, path, fh=None):
        try:
            info = os.lstat(self._path(path))
        except OSError as error:
            raise fuse.FuseOSError(error.errno or errno.EIO) from error
        return {name: getattr(info, name)
                for name in ("st_mode", "st_nlink", "st_size", "st_uid", "st_gid", "st_mtime",
                             "st_atime", "st_ctime")}

    def readdir(self, path, fh):
        return [".", "..", *os.listdir(self._path(path))]

    def open(self, path, flags):
        return os.open(self._path(path), os.O_RDONLY)

    def release(self, path, fh):
        os.close(fh)

    def read(self, path, size, offset, fh):
        time.sleep(self.read_s)
        return os.pread(fh, size, offset)


if __name__ == "__main__":
    PR_SET_PDEATHSIG = 1
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    # One thread, so that a read waits for the one before it. With kernel_cache the kernel keeps
    # read pages until they are evicted, as of a disk, even when a process opens the file again.
    fuse.FUSE(SlowFiles(sys.argv[1], float(sys.argv[3])), sys.argv[2], foreground=True,
              nothreads=True, ro=True, kernel_cache=True)
