"""The library of the worker (worker/script/core.h), by ctypes.

Calls that wait release Python's lock; the others never wait, and keep it.
"""
from __future__ import annotations

import ctypes
import math
import os
import pathlib
import threading
import time
from typing import NamedTuple, Sequence

from ._errors import CONFIG, INTERNAL, is_of_machine

OK, CLOSED, AGAIN = 0, 1, 2
SLOT, APPLY, STATE, INSTALL, EVAL, END, EDGE = 1, 2, 3, 4, 5, 6, 7

# The numbers of DType and StateSection (comm/run/checkpoint/state_tensor.h).
DTYPES = ("float32", "float64", "int64", "uint8", "float16", "bfloat16", "int32", "int16", "int8",
          "bool")
SECTIONS = ("parameter", "buffer", "optimizer")

_u8, _u32, _u64, _i32, _i64 = (ctypes.c_uint8, ctypes.c_uint32, ctypes.c_uint64, ctypes.c_int32,
                               ctypes.c_int64)
_float_p = ctypes.POINTER(ctypes.c_float)
_u64_p = ctypes.POINTER(_u64)


class Tensor(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("shape", ctypes.POINTER(_i64)),
                ("data", ctypes.c_void_p), ("bytes", _u64), ("dims", _u32), ("section", _u8),
                ("dtype", _u8), ("is_late", _u8)]


class Task(ctypes.Structure):
    _fields_ = [("step", _u64), ("epoch", _u64), ("begin", _u64), ("end", _u64),
                ("step_samples", _u64), ("slot", _u32), ("seed", _u32), ("turn", _u32)]


class Field(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("shape", ctypes.POINTER(_i64)),
                ("data", ctypes.c_void_p), ("bytes", _u64), ("sample_stride", _i64), ("dims", _u32),
                ("role", _u8), ("dtype", _u8)]


class _Batch(ctypes.Structure):
    _fields_ = [("handle", ctypes.c_void_p), ("fields", ctypes.POINTER(Field)),
                ("field_count", _u64)]


class Evaluated(ctypes.Structure):
    _fields_ = [("step", _u64), ("loss", ctypes.c_double), ("correct", _u64), ("samples", _u64)]


class Order(ctypes.Structure):
    _fields_ = [("kind", _i32), ("exit_code", _i32), ("task", Task),
                ("generation", _u64), ("step", _u64),
                ("tensors", ctypes.POINTER(Tensor)), ("tensor_count", _u64),
                ("text", ctypes.c_char_p), ("is_again", _i32), ("is_done", _i32),
                ("is_writer", _i32), ("share_end", _u64), ("loss", ctypes.c_double),
                ("ends_run", _i32),
                ("metrics", ctypes.POINTER(ctypes.c_double)), ("evaluated", Evaluated),
                ("evaluation", _u32), ("device_sums", ctypes.c_void_p), ("factor", ctypes.c_float),
                ("slots", _u32)]


class Reply(ctypes.Structure):
    _fields_ = [("code", _i32), ("skipped", _i32), ("text", ctypes.c_char_p),
                ("lrs", ctypes.POINTER(ctypes.c_double)), ("loss", ctypes.c_double), ("count", _u64),
                ("metrics", ctypes.POINTER(ctypes.c_double)),
                ("tensors", ctypes.POINTER(Tensor)), ("tensor_count", _u64), ("correct", _u64),
                ("ends_run", _i32), ("has_raised", _i32)]


class _Memory(ctypes.Structure):
    _fields_ = [("gradients", _float_p), ("statistics", _float_p), ("used", _float_p),
                ("parameter_begins", _u64_p), ("statistic_begins", _u64_p),
                ("gradient_floats", _u64), ("statistic_floats", _u64), ("statistics_at", _u64)]


class Memory(NamedTuple):
    """Where the sums of a step are: addresses of floats, and where each tensor begins there."""
    gradients: int
    statistics: int
    used: int
    parameter_begins: list[int]
    statistic_begins: list[int]
    gradient_floats: int
    statistic_floats: int
    statistics_at: int = 0  # of a place: statistics begin here (core.h)


class CoreError(Exception):
    """The library refused something; `code` is the exit code that fits."""

    def __init__(self, code: int, text: str):
        super().__init__(text)
        self.code = code


def _library_path() -> pathlib.Path:
    return pathlib.Path(__file__).parent / "liblockstep_worker.so"


def _strings(values: Sequence[str]):
    return (ctypes.c_char_p * len(values))(*[value.encode() for value in values])


def doubles_of(values: Sequence[float]):
    """An array for a pointer of C++, valid while the caller holds the array."""
    return (ctypes.c_double * max(1, len(values)))(*values)


def tensors_of(rows: Sequence[tuple[str, Sequence[int], int, int, int, int, bool]]):
    """An array of Tensor, and the objects that own its memory. `rows`: (name, shape, address,
    bytes, section, dtype, is_late) of each."""
    array = (Tensor * len(rows))()
    kept = []
    for out, (name, shape, address, size, section, dtype, is_late) in zip(array, rows):
        dims = (_i64 * len(shape))(*shape)
        word = name.encode()
        kept += [dims, word]
        out.name, out.shape, out.data, out.bytes = word, dims, address, size
        out.dims, out.section, out.dtype, out.is_late = len(shape), section, dtype, is_late
    return array, kept


class Core:
    """One ls_run. `replay`: the file of a plan; else the `job` of a run of one, or the lines of a
    `worker`."""

    def __init__(self, worker: str | None, job: bytes = b"", replay: str | None = None):
        path = os.fspath(_library_path())
        try:
            waits, stays = ctypes.CDLL(path), ctypes.PyDLL(path)
        except OSError as why:
            raise CoreError(INTERNAL if is_of_machine(why) else CONFIG,
                            f"the library of the worker cannot be loaded: {why}. Build Lockstep "
                            "(deploy/quickstart.sh), or install its wheel") from why
        stays.ls_error.restype = ctypes.c_char_p
        stays.ls_job.restype = ctypes.c_char_p
        stays.ls_job.argtypes = [ctypes.c_void_p]
        stays.ls_take.argtypes = [ctypes.c_void_p, _u32, ctypes.c_void_p, _u8, _u64]
        stays.ls_take_statistic.argtypes = [ctypes.c_void_p, _u32, ctypes.c_void_p, _u64]
        stays.ls_place.argtypes = [ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p)]
        waits.ls_wrote.argtypes = [ctypes.c_void_p, _u32, _u64]
        stays.ls_wrote_statistic.argtypes = [ctypes.c_void_p, _u32, _u64]
        for takes_stream in (stays.ls_writes_on, stays.ls_reads_on, stays.ls_has_read):
            takes_stream.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
        stays.ls_has_samples.argtypes = [ctypes.c_void_p, _u64_p, _u64]
        stays.ls_batch_free.argtypes = [ctypes.c_void_p]
        stays.ls_batch_free.restype = None
        waits.ls_batch_of.argtypes = [ctypes.c_void_p, ctypes.POINTER(Task),
                                      ctypes.POINTER(_Batch)]
        waits.ls_next.argtypes = [ctypes.c_void_p, ctypes.POINTER(Reply), ctypes.POINTER(Order),
                                  ctypes.c_int]
        waits.ls_backward_begins.argtypes = [ctypes.c_void_p]
        waits.ls_close.argtypes = [ctypes.c_void_p, ctypes.c_int]
        self._waits, self._stays = waits, stays
        self._ls_take = stays.ls_take
        self._closing = threading.RLock()  # request_stop() comes from any thread, and from handlers
        self._run = ctypes.c_void_p()
        self._order = Order()
        if replay is not None:
            self._check(stays.ls_open_replay(os.fsencode(replay), ctypes.byref(self._run)))
        else:
            self._check(stays.ls_open(worker.encode() if worker is not None else None, job,
                                      ctypes.c_size_t(len(job)), ctypes.byref(self._run)))
        lines = stays.ls_job(self._run).decode().splitlines()
        self.job: dict[str, str] = dict(line.split("=", 1) for line in lines)

    def _error(self) -> str:
        return self._stays.ls_error().decode(errors="replace")

    def _check(self, code: int) -> None:
        if code != OK:
            raise CoreError(code if code > AGAIN else 70, self._error())

    def set_turns(self, turns: int) -> None:
        """Before declare() and open_data()."""
        self._check(self._stays.ls_set_turns(self._run, _u32(turns)))

    def declare(self, samples: int, fingerprint: str) -> None:
        self._check(self._stays.ls_declare(self._run, _u64(samples), fingerprint.encode()))

    def open_data(self, cache: str | None, has_eval: bool) -> tuple[int, int]:
        """Opens the job's data; replaces declare(). Returns the number of samples to train on, and
        to evaluate on if these data are opened, too."""
        samples, eval_samples = _u64(), _u64()
        self._check(self._waits.ls_open_data(self._run,
                                             None if cache is None else os.fsencode(cache),
                                             ctypes.byref(samples),
                                             ctypes.byref(eval_samples) if has_eval else None))
        return samples.value, eval_samples.value

    def batch_of(self, task: Task) -> tuple[int, list[Field]]:
        """A handle for free_batch(), and tensors that are valid until then."""
        batch = _Batch()
        self._check(self._waits.ls_batch_of(self._run, ctypes.byref(task), ctypes.byref(batch)))
        return batch.handle, batch.fields[:batch.field_count]

    def eval_batch(self, begin: int, end: int) -> tuple[int, list[Field]]:
        """The same of these samples of the job's evaluation data."""
        batch = _Batch()
        self._check(self._waits.ls_eval_batch(self._run, _u64(begin), _u64(end), ctypes.byref(batch)))
        return batch.handle, batch.fields[:batch.field_count]

    def free_batch(self, handle: int) -> None:
        self._stays.ls_batch_free(handle)

    def task_of(self, step: int, slot: int) -> Task | None:
        task = Task()
        code = self._stays.ls_task_of(self._run, _u64(step), _u32(slot), ctypes.byref(task))
        if code == CLOSED:
            return None
        self._check(code)
        return task

    def is_check(self, applied: int) -> bool:
        """Whether members check each other after so many steps."""
        return self._stays.ls_is_check(self._run, _u64(applied)) != 0

    def indices(self, task: Task) -> list[int]:
        out = (_u64 * (task.end - task.begin))()
        self._check(self._stays.ls_indices(self._run, ctypes.byref(task), out))
        return list(out)

    def layout(self, parameters, statistics, metrics: Sequence[tuple[str, int]],
               has_counts: bool) -> Memory:
        """`parameters`, `statistics`: rows of tensors_of(). `metrics`: names, and bit by bit the turns
        that give them."""
        first, keeps_first = tensors_of(parameters)
        second, keeps_second = tensors_of(statistics)
        memory = _Memory()
        self._check(self._stays.ls_layout(self._run, first, _u32(len(first)), second,
                                          _u32(len(second)), _strings([name for name, _ in metrics]),
                                          (_u32 * len(metrics))(*[turns for _, turns in metrics]),
                                          _u32(len(metrics)), int(has_counts),
                                          ctypes.byref(memory)))
        del keeps_first, keeps_second
        address = lambda pointer: ctypes.cast(pointer, ctypes.c_void_p).value or 0
        return Memory(address(memory.gradients), address(memory.statistics), address(memory.used),
                      memory.parameter_begins[:len(parameters)],
                      memory.statistic_begins[:len(statistics)], memory.gradient_floats,
                      memory.statistic_floats, memory.statistics_at)

    def evaluates(self, name: str, samples: int, fingerprint: str, metrics: Sequence[str],
                  knows_right: bool) -> None:
        """`name`: empty for the first evaluation."""
        self._check(self._stays.ls_evaluates(self._run, name.encode(), _u64(samples),
                                             fingerprint.encode(), _strings(metrics),
                                             _u32(len(metrics)), int(knows_right)))

    def begin(self, fingerprint: Sequence[str], identity: Sequence[tuple[str, str]],
              state_hash: str, code_hash: str, lrs) -> None:
        """`lrs`: of doubles_of()."""
        keys, values = [k for k, _ in identity], [v for _, v in identity]
        self._check(self._waits.ls_begin(self._run, _strings(fingerprint), _u32(len(fingerprint)),
                                         _strings(keys), _strings(values), _u32(len(keys)),
                                         state_hash.encode(), code_hash.encode(),
                                         lrs))

    def next(self, reply: Reply | None) -> Order:
        """Waits for the next order, and looks for Python's signals meanwhile."""
        order = self.next_until(reply, math.inf)
        assert order is not None
        return order

    def next_until(self, reply: Reply | None, deadline: float) -> Order | None:
        """The same with an end, in seconds of time.monotonic(). None: nothing came."""
        handed = None if reply is None else ctypes.byref(reply)
        while time.monotonic() < deadline:
            code = self._waits.ls_next(self._run, handed, ctypes.byref(self._order), 50)
            if code == OK:
                return self._order
            if code != AGAIN:
                self._check(code)
            handed = None
        return None

    def upcoming(self, most: int) -> list[Task]:
        if most == 0:
            return []
        tasks = (Task * most)()
        count = _u32()
        self._check(self._stays.ls_upcoming(self._run, _u32(most), tasks, ctypes.byref(count)))
        return list(tasks[:count.value])

    def has_samples(self, indices: Sequence[int]) -> None:
        self._check(self._stays.ls_has_samples(self._run, (_u64 * len(indices))(*indices),
                                               len(indices)))

    def backward_begins(self) -> bool:
        """False: the generation is over, and the run will ask for the slot again."""
        code = self._waits.ls_backward_begins(self._run)
        if code == CLOSED:
            return False
        self._check(code)
        return True

    def take(self, parameter: int, address: int, dtype: int, elements: int) -> None:
        code = self._ls_take(self._run, parameter, address, dtype, elements)
        if code:  # a call less for each of thousands of gradients
            self._check(code)

    def take_statistic(self, statistic: int, address: int, elements: int) -> None:
        self._check(self._stays.ls_take_statistic(self._run, statistic, address, elements))

    def open_device(self, path: str) -> None:
        """`path`: of the module of the device. From now on place() and its sisters replace take()."""
        self._check(self._waits.ls_open_device(self._run, os.fsencode(path)))

    def place(self) -> int:
        """The address of this slot's place on the device."""
        place = ctypes.c_void_p()
        self._check(self._stays.ls_place(self._run, ctypes.byref(place)))
        return place.value or 0

    def writes_on(self, stream: int) -> None:
        self._check(self._stays.ls_writes_on(self._run, stream))

    def wrote(self, parameter: int, elements: int) -> None:
        # Where a bucket is full, NCCL may keep the caller until its peers are there.
        self._check(self._waits.ls_wrote(self._run, parameter, elements))

    def wrote_statistic(self, statistic: int, elements: int) -> None:
        self._check(self._stays.ls_wrote_statistic(self._run, statistic, elements))

    def reads_on(self, stream: int) -> None:
        self._check(self._stays.ls_reads_on(self._run, stream))

    def has_read(self, stream: int) -> None:
        self._check(self._stays.ls_has_read(self._run, stream))

    def set_paused(self, is_paused: bool) -> None:
        with self._closing:
            if self._run:
                self._stays.ls_set_paused(self._run, int(is_paused))

    def request_stop(self) -> None:
        with self._closing:
            if self._run:
                self._stays.ls_request_stop(self._run)

    def close(self, exit_code: int) -> None:
        with self._closing:
            if self._run:
                run, self._run = self._run, ctypes.c_void_p()  # a handler may come meanwhile
                self._waits.ls_close(run, exit_code)
