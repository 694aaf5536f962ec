"""Messages between the main process, the zygote and the data processes.

frame   = length of payload (u32), kind (u8), payload
SPAWN   main → zygote   pid of the process to replace, or 0 (i32)
SPAWNED zygote → main   wait status of the replaced, pid or -errno (i32); a socket attached
TASK    main → data     number (u64), encode_task()
FREE    main → data     slab (u32): no view of it is left
BATCH   data → main     BATCH_HEAD, indices (i64 each); a memfd is attached if the slab is new
ERROR   data → main     number (u64), exit code (u32), UTF-8 text
"""

from __future__ import annotations

import os
import select
import socket
import struct
from collections import deque

SPAWN, SPAWNED, TASK, FREE, BATCH, ERROR = range(1, 7)

_CLOEXEC = 0x40000000  # MSG_CMSG_CLOEXEC, which Python has no name for.

_FRAME = struct.Struct("<IB")
SPAWN_BODY = struct.Struct("<i")
SPAWNED_BODY = struct.Struct("<ii")
FREE_BODY = struct.Struct("<I")
NUMBER = struct.Struct("<Q")
ERROR_HEAD = struct.Struct("<QI")
# number of the task, slab, is it new, bytes of the slab, tail, bytes of table, bytes of text
BATCH_HEAD = struct.Struct("<QIBQQII")


class Channel:
    """One end of a stream of frames with descriptors. `closed` once the other end is gone."""

    def __init__(self, end: socket.socket) -> None:
        end.setblocking(False)
        self._socket = end
        self._input = bytearray()
        self._output = bytearray()
        self._frames: deque[tuple[int, bytes]] = deque()
        self._descriptors: deque[int] = deque()
        self.closed = False

    def fileno(self) -> int:
        return self._socket.fileno()

    @property
    def has_output(self) -> bool:
        """Whether a part of the frames that were put waits for room in the socket."""
        return bool(self._output) and not self.closed

    def put(self, kind: int, payload: bytes) -> None:
        """Sends a frame, or what the socket takes now; flush() sends the rest."""
        self._output += _FRAME.pack(len(payload), kind) + payload
        self.flush()

    def put_with_descriptor(self, kind: int, payload: bytes, descriptor: int) -> None:
        """Sends a frame with a descriptor; waits for room."""
        self.drain()
        frame = _FRAME.pack(len(payload), kind) + payload
        while not self.closed:
            try:
                flags = socket.MSG_NOSIGNAL
                sent = socket.send_fds(self._socket, [frame], [descriptor], flags)
                self._output += frame[sent:]
                return
            except BlockingIOError:
                _poll_one(self._socket, select.POLLOUT, None)
            except OSError:
                self.closed = True

    def flush(self) -> None:
        """Sends what the socket takes without waiting."""
        while self._output and not self.closed:
            try:
                sent = self._socket.send(self._output, socket.MSG_NOSIGNAL)
                del self._output[:sent]
            except BlockingIOError:
                return
            except OSError:
                self.closed = True

    def drain(self) -> None:
        """Sends all that was put; waits for room."""
        self.flush()
        while self.has_output:
            _poll_one(self._socket, select.POLLOUT, None)
            self.flush()

    def read(self) -> None:
        """Reads what has come, without waiting."""
        while not self.closed:
            try:
                data, descriptors, _, _ = socket.recv_fds(self._socket, 1 << 16, 4, _CLOEXEC)
            except BlockingIOError:
                break
            except OSError:
                self.closed = True
                break
            self._descriptors.extend(descriptors)
            if not data:
                self.closed = True
            self._input += data
        while len(self._input) >= _FRAME.size:
            length, kind = _FRAME.unpack_from(self._input)
            end = _FRAME.size + length
            if len(self._input) < end:
                break
            self._frames.append((kind, bytes(self._input[_FRAME.size : end])))
            del self._input[:end]

    def next_frame(self) -> tuple[int, bytes] | None:
        """The next frame that was read, or None."""
        return self._frames.popleft() if self._frames else None

    def wait_frame(self, timeout_ms: int | None = None) -> tuple[int, bytes] | None:
        """The next frame; None when the other end is gone or the time is over."""
        while not self._frames:
            if self.closed or not _poll_one(self._socket, select.POLLIN, timeout_ms):
                return None
            self.read()
        return self._frames.popleft()

    def next_descriptor(self) -> int:
        """The descriptor that came with the frame in hand; the caller closes it."""
        return self._descriptors.popleft()

    def close(self) -> None:
        self.closed = True
        self._socket.close()
        while self._descriptors:
            os.close(self._descriptors.popleft())


def _poll_one(end: socket.socket, event: int, timeout_ms: int | None) -> bool:
    poll = select.poll()
    poll.register(end, event)
    return bool(poll.poll(timeout_ms))
