"""Cuts connections of other processes. It duplicates a socket of theirs into this process, and what
it does to the duplicate happens to the socket itself. Needs the rights of a debugger.
"""
import contextlib
import ctypes
import fcntl
import os
import socket
import struct
import termios

PIDFD_OPEN, PIDFD_GETFD = 434, 438  # the same on every architecture
LIBC = ctypes.CDLL(None, use_errno=True)


def _system_call(number, *arguments):
    result = LIBC.syscall(ctypes.c_long(number), *(ctypes.c_long(a) for a in arguments))
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def sockets_of(pid):
    """Duplicates of every stream socket of a process. The caller closes them."""
    found = []
    pidfd = _system_call(PIDFD_OPEN, pid, 0)
    try:
        for entry in os.listdir(f"/proc/{pid}/fd"):
            with contextlib.suppress(OSError):  # closed meanwhile
                if os.readlink(f"/proc/{pid}/fd/{entry}").startswith("socket:"):
                    found.append(socket.socket(fileno=_system_call(PIDFD_GETFD, pidfd,
                                                                   int(entry), 0)))
    finally:
        os.close(pidfd)
    return found


@contextlib.contextmanager
def connections(pid):
    """[(peer's address, socket)] of the connected sockets of a process."""
    sockets, connected = sockets_of(pid), []
    for sock in sockets:
        with contextlib.suppress(OSError):
            connected.append((sock.getpeername(), sock))
    try:
        yield connected
    finally:
        for sock in sockets:
            sock.close()


def unix_name(pid):
    """The name at which a process accepts connections of its host."""
    sockets = sockets_of(pid)
    try:
        for sock in sockets:
            if sock.family == socket.AF_UNIX and sock.getsockopt(socket.SOL_SOCKET,
                                                                 socket.SO_ACCEPTCONN):
                return sock.getsockname()
    finally:
        for sock in sockets:
            sock.close()
    raise AssertionError(f"process {pid} listens on no Unix socket")


def unread(pid, address):
    """The number of bytes that have arrived from an address and that the process has not
    read yet."""
    waiting = struct.pack("i", 0)
    with connections(pid) as found:
        return sum(struct.unpack("i", fcntl.ioctl(sock, termios.FIONREAD, waiting))[0]
                   for peer, sock in found if peer == address)


def close_both_ways(sock):
    sock.shutdown(socket.SHUT_RDWR)


def reset(sock):
    """Resets as if the network had forgotten the connection: both ends get ECONNRESET."""
    unspecified = (ctypes.c_char * 16)()  # of the family AF_UNSPEC
    if LIBC.connect(sock.fileno(), unspecified, 16) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def cut(pid, address, how=close_both_ways):
    """Cuts every connection of a process to an address. Returns their number."""
    number = 0
    with connections(pid) as found:
        for peer, sock in found:
            if peer == address:
                with contextlib.suppress(OSError):  # it was cut from the other end meanwhile
                    how(sock)
                    number += 1
    return number
