"""A stranger that listens on a port where others expect a coordinator."""
import contextlib
import os
import socket
import struct
import threading
import time

PREAMBLE = b"LOCKSTP\x05"
CHALLENGE, REFUSE = 1, 4


def frame(kind, payload):
    return struct.pack("<IB", len(payload), kind) + payload


def refuse(line):
    """Says that the caller's token is wrong, as a coordinator would."""
    nonce = os.urandom(32)
    line.sendall(PREAMBLE + frame(CHALLENGE, b"\x08\x02\x12\x20" + nonce))
    line.recv(4096)
    reason = b"the token is wrong"
    line.sendall(frame(REFUSE, b"\x0a" + bytes([len(reason)]) + reason))


class Impostor:
    """Listens on the port, and calls `with_each` for each connection."""

    def __init__(self, address, with_each):
        self.with_each, self.over, self.met = with_each, threading.Event(), 0
        self.listener = socket.socket()
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        deadline = time.monotonic() + 10
        while True:
            try:
                self.listener.bind(address)
                break
            except OSError:  # its owner is not quite dead
                if time.monotonic() > deadline:
                    raise
        self.listener.listen(64)
        self.listener.settimeout(0.1)
        self.thread = threading.Thread(target=self._serve)
        self.thread.start()

    def _serve(self):
        while not self.over.is_set():
            with contextlib.suppress(TimeoutError):
                line, _ = self.listener.accept()
                self.met += 1
                line.settimeout(5)
                with line, contextlib.suppress(OSError):
                    self.with_each(line)

    def leave(self):
        self.over.set()
        self.thread.join()
        self.listener.close()
