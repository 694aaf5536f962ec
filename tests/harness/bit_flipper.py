"""Flips one bit of a worker's fresh result, as a faulty processor would: between the instruction
that made the value and the one that uses it. The worker's program knows nothing of it. Breakpoints
stop it at the entry of a function, where the arguments are in registers, or where a function
returns.
"""
import subprocess
import time

from tracer import Tracer


def addresses(program, names):
    """Addresses of functions, by the beginning of their names with arguments, from the symbol
    table."""
    table = subprocess.run(["nm", "-C", program], capture_output=True, text=True, check=True).stdout
    found = {}
    for line in table.splitlines():
        address, kind, name = line.split(maxsplit=2) if line[0] != " " else ("0", "U", "")
        for wanted in names:
            if kind in "tTwW" and name.startswith(wanted) and not name.endswith("[clone .cold]"):
                found[wanted] = int(address, 16)
    missing = set(names) - set(found)
    if missing:
        raise AssertionError(f"{program} has no function of its own called {missing}")
    return found


class BitFlipper:
    """Make it before the run, because looking functions up takes a moment."""

    GRADIENT_DONE = "lockstep::hash_gradients("
    CHECKED_SUM = "lockstep::host::GenerationCollective::check_next_sum("
    SUM = "lockstep::evaluate_sum("
    STATE_CHECKED = "lockstep::hash_of(std::span<lockstep::StateTensor const"
    APPLY = "lockstep::EngineImpl::apply("

    def __init__(self, program):
        self.at = addresses(program, [self.GRADIENT_DONE, self.CHECKED_SUM, self.SUM,
                                      self.STATE_CHECKED, self.APPLY])

    def at_check(self, pid, action, deadline_s, later_steps=0):
        """Calls `action()` while the worker stands still. A step is applied, and the following
        check has not looked at the weights yet; or some steps after that, in which others use this
        worker's values."""
        deadline = time.monotonic() + deadline_s
        tracer = Tracer(pid)
        try:
            entry = tracer.base + self.at[self.STATE_CHECKED]
            tracer.begin_at(entry, deadline)
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
        finally:
            tracer.let_go()

    def flip_gradient(self, pid, deadline_s):
        """Flips in the gradient of a slot that this worker computes and others compute again: after
        the gradient is complete, and before it is hashed or sent. REQUIRES: all gradients are one
        bucket."""
        deadline = time.monotonic() + deadline_s
        tracer = Tracer(pid)
        try:
            entry = tracer.base + self.at[self.GRADIENT_DONE]
            tracer.begin_at(entry, deadline)
            while True:
                tid, _ = tracer.next_hit(deadline)
                registers = tracer.registers(tid)
                if tracer.is_shared(registers.rsi):
                    break
                tracer.step_over(tid, entry)  # it computes another one's again
                tracer.go_on(tid)
            tracer.flip_bit(tid, registers.rsi)
            tracer.leave(tid, entry)
        finally:
            tracer.let_go()

    def flip_sum(self, pid, rank, deadline_s):
        """Flips in the slice that this worker, of that rank, adds up for all and others add up
        again, before anybody reads it."""
        deadline = time.monotonic() + deadline_s
        tracer = Tracer(pid)
        try:
            armed = tracer.base + self.at[self.CHECKED_SUM]
            entry = tracer.base + self.at[self.SUM]
            tracer.begin_at(armed, deadline)
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
        finally:
            tracer.let_go()
