"""Stops another process at breakpoints, as a debugger does (ptrace, x86-64 only).

It traces every thread of the process. A breakpoint is one byte of its code in memory. The tracer
removes all breakpoints before it lets the process go.
"""
import array
import contextlib
import ctypes
import os
import pathlib
import signal
import time

PTRACE_POKEDATA, PTRACE_CONT, PTRACE_SINGLESTEP = 5, 7, 9
PTRACE_GETREGS, PTRACE_SETREGS, PTRACE_DETACH = 12, 13, 17
PTRACE_SEIZE, PTRACE_INTERRUPT = 0x4206, 0x4207
TRACE_CLONE, EVENT_CLONE, EVENT_STOP = 0x08, 3, 128
WALL = 0x40000000
BREAKPOINT = 0xcc
BIT = 20  # of a float's mantissa: nothing about the result looks wrong
NAMES = ("r15 r14 r13 r12 rbp rbx r11 r10 r9 r8 rax rcx rdx rsi rdi orig_rax rip cs eflags rsp ss "
         "fs_base gs_base ds es fs gs").split()


class Registers(ctypes.Structure):
    _fields_ = [(name, ctypes.c_ulonglong) for name in NAMES]


class Gone(Exception):
    """The worker has ended."""


class Tracer:
    """A traced process. Only the Python thread that made it may use it."""

    def __init__(self, pid):
        self.pid = pid
        self.libc = ctypes.CDLL(None, use_errno=True)
        self.libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
        self.libc.ptrace.restype = ctypes.c_long
        self.memory = open(f"/proc/{pid}/mem", "rb", 0)
        self.original = {}    # address of a breakpoint -> the byte that was there
        self.stopped = set()  # threads that stand still now
        self.pending = {}     # thread -> the signal that it was about to get
        self.threads = set()
        try:
            for _ in range(2):  # one that began meanwhile is traced by the second look
                for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
                    self._trace(int(task.name))
            self.base = self._base()
        except OSError as error:
            self.memory.close()
            raise Gone(str(error)) from error

    def _trace(self, tid):
        if tid not in self.threads:
            with contextlib.suppress(ProcessLookupError):  # it has ended meanwhile
                self._ptrace(PTRACE_SEIZE, tid, 0, TRACE_CLONE)
                self.threads.add(tid)

    def _ptrace(self, request, tid, address=0, data=0):
        if self.libc.ptrace(request, tid, address, data) == -1:
            error = ctypes.get_errno()
            raise OSError(error, os.strerror(error))

    def _base(self):
        program = os.readlink(f"/proc/{self.pid}/exe")
        for line in pathlib.Path(f"/proc/{self.pid}/maps").read_text().splitlines():
            if line.endswith(program) and line.split()[2] == "00000000":
                return int(line.split("-")[0], 16)
        raise AssertionError(f"{program} is not mapped")

    def read_word(self, address):
        self.memory.seek(address)
        return int.from_bytes(self.memory.read(8), "little")

    def _write_byte(self, tid, address, value):
        word = self.read_word(address) & ~0xff | value
        self._ptrace(PTRACE_POKEDATA, tid, address, word)

    def flip_bit(self, tid, address):
        """Flips in the largest of the floats from `address` on, so that it counts."""
        self.memory.seek(address)
        floats = array.array("f", self.memory.read(16_384))
        address += 4 * max(range(len(floats)), key=lambda i: abs(floats[i]))
        self._ptrace(PTRACE_POKEDATA, tid, address, self.read_word(address) ^ (1 << BIT))

    def registers(self, tid):
        registers = Registers()
        self._ptrace(PTRACE_GETREGS, tid, 0, ctypes.addressof(registers))
        return registers

    def set_breakpoint(self, tid, address):
        """`tid` stands still."""
        if address not in self.original:
            self.original[address] = self.read_word(address) & 0xff
            self._write_byte(tid, address, BREAKPOINT)

    def clear_breakpoint(self, tid, address):
        self._write_byte(tid, address, self.original.pop(address))

    def begin_at(self, address, deadline):
        """Sets the first breakpoint, for which some thread has to stand still."""
        tid = self.pid
        self._ptrace(PTRACE_INTERRUPT, tid)
        while True:
            _, status = os.waitpid(tid, WALL)
            if not os.WIFSTOPPED(status) or time.monotonic() > deadline:
                raise Gone("the worker ended")
            self.stopped.add(tid)
            if status >> 16 == EVENT_STOP:
                break
            self.go_on(tid, os.WSTOPSIG(status) if status >> 16 == 0 else 0)
        self.set_breakpoint(tid, address)
        self.go_on(tid)

    def leave(self, tid, address):
        """Puts a thread that met a breakpoint back before it. The thread can go on only after the
        breakpoint is removed."""
        registers = self.registers(tid)
        registers.rip = address
        self._ptrace(PTRACE_SETREGS, tid, 0, ctypes.addressof(registers))

    def go_on(self, tid, number=0):
        self.stopped.discard(tid)
        self._ptrace(PTRACE_CONT, tid, 0, number)

    def step_over(self, tid, address):
        """Lets a thread that met a breakpoint run the instruction there. Other threads may pass
        meanwhile."""
        self.leave(tid, address)
        self.clear_breakpoint(tid, address)
        self._ptrace(PTRACE_SINGLESTEP, tid)
        self.stopped.discard(tid)
        _, status = os.waitpid(tid, WALL)
        if not os.WIFSTOPPED(status):
            raise Gone(f"thread {tid} ended")
        self.stopped.add(tid)
        self.set_breakpoint(tid, address)

    def next_hit(self, deadline):
        """A thread that has met a breakpoint and stands still, and the address."""
        while time.monotonic() < deadline:
            for tid in sorted(self.threads):
                try:
                    got, status = os.waitpid(tid, WALL | os.WNOHANG)
                except ChildProcessError:
                    self.threads.discard(tid)
                    continue
                if got == 0:
                    continue
                if not os.WIFSTOPPED(status):
                    self.threads.discard(tid)
                    continue
                self.stopped.add(tid)
                hit = self._take(tid, status)
                if hit is not None:
                    return tid, hit
            if not self.threads:
                raise Gone("the worker ended")
            time.sleep(0.0005)
        raise AssertionError("no breakpoint was met before the deadline")

    def _take(self, tid, status):
        event, number = status >> 16, os.WSTOPSIG(status)
        if event == EVENT_CLONE:
            # The new thread is traced from its first instruction on, and stops by itself.
            for task in pathlib.Path(f"/proc/{self.pid}/task").iterdir():
                self.threads.add(int(task.name))
        if event == 0 and number == signal.SIGTRAP:
            address = self.registers(tid).rip - 1
            if address in self.original:
                return address
        self.go_on(tid, number if event == 0 and number != signal.SIGTRAP else 0)
        return None

    def let_go(self):
        """Removes all breakpoints, puts threads that met one back before it, and ends tracing."""
        for tid in sorted(self.threads - self.stopped):
            self._stop(tid)
        with contextlib.suppress(ProcessLookupError):  # killed meanwhile
            for address in list(self.original) if self.stopped else []:
                self.clear_breakpoint(min(self.stopped), address)
        for tid in sorted(self.stopped):
            with contextlib.suppress(ProcessLookupError):
                self._ptrace(PTRACE_DETACH, tid, 0, self.pending.get(tid, 0))
                self.threads.discard(tid)
        self._bury()
        self.memory.close()

    def _stop(self, tid):
        """Threads end at any time, and this one may have ended."""
        with contextlib.suppress(ProcessLookupError, ChildProcessError):
            self._ptrace(PTRACE_INTERRUPT, tid)
            _, status = os.waitpid(tid, WALL)
            if os.WIFSTOPPED(status):
                self.stopped.add(tid)
                self._put_back(tid, status)
            else:
                self.threads.discard(tid)

    def _bury(self):
        """The process learns of a thread's end only after the tracer has."""
        deadline = time.monotonic() + 10
        while self.threads and time.monotonic() < deadline:
            for tid in sorted(self.threads, reverse=True):
                try:
                    got, status = os.waitpid(tid, WALL | os.WNOHANG)
                    is_gone = got == tid and not os.WIFSTOPPED(status)
                except ChildProcessError:
                    is_gone = True
                if is_gone:
                    self.threads.discard(tid)
            time.sleep(0.001)

    def _put_back(self, tid, status):
        if status >> 16 != 0:
            return
        if os.WSTOPSIG(status) != signal.SIGTRAP:
            self.pending[tid] = os.WSTOPSIG(status)
            return
        registers = self.registers(tid)
        if registers.rip - 1 in self.original:
            registers.rip -= 1
            self._ptrace(PTRACE_SETREGS, tid, 0, ctypes.addressof(registers))

    def is_shared(self, address):
        """True if other workers read this memory: the gradients and their sums."""
        for line in pathlib.Path(f"/proc/{self.pid}/maps").read_text().splitlines():
            begin, end = (int(x, 16) for x in line.split()[0].split("-"))
            if begin <= address < end:
                return "/memfd:" in line
        return False
