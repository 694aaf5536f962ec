"""Mounts a directory elsewhere through FUSE, for reading and writing, as a network file system
would: mounted_files.py DIRECTORY MOUNT_POINT

Prints "mounted" when it is ready. Ends when it is unmounted, or with its parent.
"""
import ctypes
import os
import pathlib
import signal
import sys

import fusepy as fuse


class MountedFiles(fuse.Operations):
    use_ns = True  # times are kept whole

    def __init__(self, directory):
        self.directory = pathlib.Path(directory).resolve()

    def __call__(self, name, path, *args):
        try:
            return getattr(self, name)(path, *args)
        except OSError as error:
            raise fuse.FuseOSError(error.errno) from error

    def init(self, path):
        print("mounted", flush=True)

    def _path(self, path):
        return str(self.directory / path.lstrip("/"))

    def getattr(self, path, fh=None):
        info = os.lstat(self._path(path))
        return {**{name: getattr(info, name) for name in (
                    "st_mode", "st_nlink", "st_size", "st_uid", "st_gid", "st_blocks")},
                **{name: getattr(info, name + "_ns") for name in (
                    "st_mtime", "st_atime", "st_ctime")}}

    def readdir(self, path, fh):
        return [".", "..", *os.listdir(self._path(path))]

    def statfs(self, path):
        info = os.statvfs(self._path(path))
        return {name: getattr(info, name) for name in (
            "f_bavail", "f_bfree", "f_blocks", "f_bsize", "f_favail", "f_ffree", "f_files",
            "f_flag", "f_frsize", "f_namemax")}

    def open(self, path, flags):
        return os.open(self._path(path), flags)

    def create(self, path, mode, fi=None):
        return os.open(self._path(path), os.O_RDWR | os.O_CREAT, mode)

    def read(self, path, size, offset, fh):
        return os.pread(fh, size, offset)

    def write(self, path, data, offset, fh):
        return os.pwrite(fh, data, offset)

    def truncate(self, path, length, fh=None):
        os.truncate(self._path(path), length)

    def release(self, path, fh):
        os.close(fh)

    def fsync(self, path, datasync, fh):
        os.fsync(fh)

    def chmod(self, path, mode):
        os.chmod(self._path(path), mode)

    def chown(self, path, uid, gid):
        os.chown(self._path(path), uid, gid)

    def mkdir(self, path, mode):
        os.mkdir(self._path(path), mode)

    def rmdir(self, path):
        os.rmdir(self._path(path))

    def unlink(self, path):
        os.unlink(self._path(path))

    def link(self, target, source):
        os.link(self._path(source), self._path(target))

    def rename(self, old, new):
        os.rename(self._path(old), self._path(new))

    def utimens(self, path, times=None):
        os.utime(self._path(path), ns=times)


if __name__ == "__main__":
    PR_SET_PDEATHSIG = 1
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    fuse.FUSE(MountedFiles(sys.argv[1]), sys.argv[2], foreground=True, nothreads=True)
