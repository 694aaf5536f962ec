"""A data process: computes the tasks that come and hands the batches over in slabs."""

from __future__ import annotations

import os
import sys
import traceback
from array import array

from ._errors import INTERNAL, DataError
from ._fetch import Fetcher
from ._seeds import in_process
from ._slabs import SlabWriter
from ._task import Task, decode_task
from ._wire import BATCH, BATCH_HEAD, ERROR, ERROR_HEAD, FREE, FREE_BODY, NUMBER, Channel


class _DataProcess:
    def __init__(self, fetcher: Fetcher, channel: Channel) -> None:
        self._fetcher = fetcher
        self._channel = channel
        self._slabs = SlabWriter()
        self._tasks: list[tuple[int, Task]] = []

    def _sort(self, frame: tuple[int, bytes]) -> None:
        kind, payload = frame
        if kind == FREE:
            self._slabs.free(FREE_BODY.unpack(payload)[0])
        else:
            number = NUMBER.unpack_from(payload)[0]
            self._tasks.append((number, decode_task(payload[NUMBER.size :])))

    def _read_all(self) -> None:
        self._channel.read()
        while (frame := self._channel.next_frame()) is not None:
            self._sort(frame)

    def _answer(self, number: int, task: Task) -> None:
        text, blobs = self._fetcher.compute(task)
        self._read_all()  # A slab may have returned meanwhile.
        written = self._slabs.write(text, blobs)
        head = BATCH_HEAD.pack(
            number,
            written.slab,
            written.descriptor is not None,
            written.bytes,
            written.tail,
            written.table_bytes,
            written.text_bytes,
        )
        payload = head + array("q", task.indices).tobytes()
        if written.descriptor is None:
            self._channel.put(BATCH, payload)
        else:
            try:
                self._channel.put_with_descriptor(BATCH, payload, written.descriptor)
            finally:
                os.close(written.descriptor)

    def serve(self) -> None:
        """Computes tasks in the order they came until the main process hangs up."""
        while True:
            if not self._tasks:
                frame = self._channel.wait_frame()
                if frame is None:
                    return
                self._sort(frame)
                continue
            number, task = self._tasks.pop(0)
            try:
                self._answer(number, task)
            except DataError as error:
                self._put_error(number, error.code, error.text)
            except Exception:
                text = f"a data process failed on its own account:\n{traceback.format_exc()}"
                self._put_error(number, INTERNAL, text)
            self._channel.drain()
            sys.stdout.flush()  # Output of samples appears, even if the process is killed.

    def _put_error(self, number: int, code: int, text: str) -> None:
        encoded = text.encode("utf-8", "backslashreplace")
        self._channel.put(ERROR, ERROR_HEAD.pack(number, code) + encoded)


def serve_tasks(fetcher: Fetcher, channel: Channel) -> None:
    """The life of a data process. Returns when the main process hangs up."""
    with in_process():  # the zygote may have been forked inside of an autocast
        _DataProcess(fetcher, channel).serve()
