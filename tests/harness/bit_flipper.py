"""Flips one bit of a worker's fresh result, as a faulty processor would: between the instruction
that made the value and the one that uses it. The worker's program knows nothing of it. Breakpoints
stop it at the entry of a function, where the arguments are in registers, or where a function
returns.
"""
import contextlib
import json
import struct
import subprocess
import time

from tracer import Tracer


def addresses(program, names):
    """Addresses of functions, by the beginning of their names with arguments, from the symbol
    table. A name that several functions begin with would stop the program in the wrong one."""
    table = subprocess.run(["nm", "-C", program], capture_output=True, text=True, check=True).stdout
    found = {name: {} for name in names}
    for line in table.splitlines():
        address, kind, name = line.split(maxsplit=2) if line[0] != " " else ("0", "U", "")
        for wanted in names:
            if kind in "tTwW" and name.startswith(wanted) and not name.endswith("[clone .cold]"):
                found[wanted][name] = int(address, 16)
    for wanted, functions in found.items():
        if len(functions) != 1:
            raise AssertionError(f"{program} has {len(functions)} functions called {wanted}, not "
                                 f"one: {sorted(functions)}")
    return {wanted: next(iter(functions.values())) for wanted, functions in found.items()}


def some_weights(run):
    """The bytes of 1,024 weights, from the newest checkpoint."""
    newest = sorted((run.run_dir / "checkpoints").glob("step-*/model.safetensors"))[-1]
    with open(newest, "rb") as f:
        size = struct.unpack("<Q", f.read(8))[0]
        header = json.loads(f.read(size))
        begin, end = max((t["data_offsets"] for name, t in header.items() if name != "__metadata__"),
                         key=lambda offsets: offsets[1] - offsets[0])
        f.seek(8 + size + begin)
        return f.read(min(4096, end - begin))


def places_of(pid, pattern):
    """The addresses at which the process holds these bytes in memory that it may write."""
    found = []
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb", 0) as memory:
        for line in maps:
            fields = line.split()
            if not fields[1].startswith("rw") or fields[-1].startswith("[v"):
                continue
            begin, end = (int(x, 16) for x in fields[0].split("-"))
            memory.seek(begin)
            try:
                data = memory.read(end - begin)
            except OSError:
                continue
            at = data.find(pattern)
            while at >= 0:
                found.append(begin + at)
                at = data.find(pattern, at + 1)
    return found


def flip_one_bit(run, pid):
    """Flips a bit of one weight wherever this worker holds it, as a faulty module would.
    REQUIRES: the worker stands still."""
    places = places_of(pid, some_weights(run))
    assert places, "the weights were not found"
    with open(f"/proc/{pid}/mem", "r+b", 0) as memory:
        for place in places:
            memory.seek(place + 42)
            value = memory.read(1)[0]
            memory.seek(place + 42)
            memory.write(bytes([value ^ 0x40]))


class BitFlipper:
    """Make it before the run, because looking functions up takes a moment."""

    GRADIENT_DONE = "lockstep::hash_gradients(lockstep::FlatLayout const&"
    CHECKED_SUM = "lockstep::host::GenerationCollective::check_next_sum("
    SUM = "lockstep::evaluate_sum("
    STATE_CHECKED = "lockstep::hash_of(std::span<lockstep::StateTensor const"
    APPLY = "lockstep::EngineImpl::apply("
    LAST_CHECKPOINT = "lockstep::Runner::final_checkpoint("

    def __init__(self, program):
        self.at = addresses(program, [self.GRADIENT_DONE, self.CHECKED_SUM, self.SUM,
                                      self.STATE_CHECKED, self.APPLY,
                                      self.LAST_CHECKPOINT])

    @contextlib.contextmanager
    def stopped_at(self, function, pid, deadline_s):
        """Yields the tracer of a worker with a breakpoint at a function, the function's address and
        the deadline. The tracer lets go at the end."""
        deadline = time.monotonic() + deadline_s
        tracer = Tracer(pid)
        try:
            entry = tracer.base + self.at[function]
            tracer.begin_at(entry, deadline)
            yield tracer, entry, deadline
        finally:
            tracer.let_go()

    def at_check(self, pid, action, deadline_s, later_steps=0):
        """Calls `action()` while the worker stands still: after it applied a step and before the
        check that follows has looked at the weights, or `later_steps` steps after that, in which
        others use this worker's values."""
        with self.stopped_at(self.STATE_CHECKED, pid, deadline_s) as (tracer, entry, deadline):
            tid, _ = tracer.next_hit(deadline)
            tracer.step_over(tid, entry)
            tracer.clear_breakpoint(tid, entry)
            entry = tracer.base + self.at[self.APPLY]
            tracer.set_breakpoint(tid, entry)
            for _ in range(later_steps):
                tracer.go_on(tid)
                tid, _ = tracer.next_hit(deadline)
                tracer.step_over(tid, entry)
            action()

    def before_last_checkpoint(self, pid, action, deadline_s):
        """Calls `action()` while the worker stands still: all steps are applied and compared, the
        last evaluation is over, and the last checkpoint is not copied yet."""
        with self.stopped_at(self.LAST_CHECKPOINT, pid, deadline_s) as (tracer, entry, deadline):
            tid, _ = tracer.next_hit(deadline)
            tracer.leave(tid, entry)
            action()

    def flip_gradient(self, pid, deadline_s):
        """Flips in the gradient of a slot that this worker computes and others compute again: after
        the gradient is complete, and before it is hashed or sent. REQUIRES: all gradients are one
        bucket."""
        with self.stopped_at(self.GRADIENT_DONE, pid, deadline_s) as (tracer, entry, deadline):
            while True:
                tid, _ = tracer.next_hit(deadline)
                registers = tracer.registers(tid)
                if tracer.is_shared(registers.rsi):
                    break
                tracer.step_over(tid, entry)  # it computes another one's again
                tracer.go_on(tid)
            tracer.flip_bit(tid, registers.rsi)
            tracer.leave(tid, entry)

    def flip_sum(self, pid, rank, deadline_s):
        """Flips in the slice that this worker, of that rank, adds up for all and others add up
        again, before any of them reads it."""
        with self.stopped_at(self.CHECKED_SUM, pid, deadline_s) as (tracer, armed, deadline):
            entry = tracer.base + self.at[self.SUM]
            while True:
                tid, _ = tracer.next_hit(deadline)
                owner = tracer.registers(tid).rsi & 0xffffffff
                tracer.step_over(tid, armed)
                if owner == rank:
                    break
                tracer.go_on(tid)
            tracer.clear_breakpoint(tid, armed)
            tracer.set_breakpoint(tid, entry)
            tracer.go_on(tid)
            tid, _ = tracer.next_hit(deadline)
            registers = tracer.registers(tid)
            out, back = registers.rcx, tracer.read_word(registers.rsp)
            tracer.leave(tid, entry)
            tracer.clear_breakpoint(tid, entry)
            tracer.set_breakpoint(tid, back)
            tracer.go_on(tid)
            tid, _ = tracer.next_hit(deadline)
            assert tracer.is_shared(out), "that was no sum for all"
            tracer.flip_bit(tid, out)
            tracer.leave(tid, back)
