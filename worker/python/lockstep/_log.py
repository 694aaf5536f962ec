"""Values that a script logs about its steps, and how the writer alone puts them out.

    body, update, after_step ── log() ─▶ the step in work ── applied ─▶ the newest steps
                                                                             │ writer
                                                          script_log.jsonl ◀─┴─▶ on_log(step, values)

INVARIANTS
 L1 Values count once their step is applied: values that a slot of an ended generation logged do not
    go out.
 L2 Every worker holds the newest steps. If the writer dies between a step and its line, the next
    writer, which has applied the step, too, writes the line.
 L3 A line is in the file before anything that depends on it: the next slot, or a checkpoint. Before
    a checkpoint the file is on the disk.
 L4 Values logged between two epochs have a line of their own, after the line of the step before.

Main thread only.
"""
from __future__ import annotations

import json
import math
import pathlib
import sys
from collections import deque
from typing import Any, Callable, Mapping, NamedTuple

from ._core import Order
from ._errors import Misuse
from ._log_file import CHECK_NAME, LogFile, Place, damaged_path, with_check

MOST_NAMES = 256    # a step
NAME_CHARS = 128
TEXT_CHARS = 4096
_HELD_STEPS = 64    # no worker is so far ahead of the writer
_OUTSIDE = ("log() outside of the loop over run.batches(): a value belongs to a step, so log it in the "
            "loop's body, or in keep(after_step=...)")


class Logged(NamedTuple):
    step: int  # applied steps with it, as in history.jsonl
    values: dict[str, Any]
    is_edge: bool = False  # logged between two epochs, after this step

    @property
    def place(self) -> Place:
        return self.step, self.is_edge

    def line(self) -> bytes:
        values = {name: value if _is_finite(value) else None for name, value in self.values.items()}
        head = {"step": self.step, "edge": True} if self.is_edge else {"step": self.step}
        text = json.dumps({**head, **values}, allow_nan=False, ensure_ascii=False,
                          separators=(",", ":"))
        return with_check(text.encode(errors="replace"))


def checked_name(name: Any) -> str:
    if not isinstance(name, str) or not name.isprintable() or not 0 < len(name) <= NAME_CHARS:
        raise Misuse(f"log() was given the name {str(name)[:NAME_CHARS]!r}: a name is a text of 1 to "
                     f"{NAME_CHARS} printable characters")
    if name in ("step", CHECK_NAME):
        raise Misuse(f"log() was given the name {name!r}, which every line has already: leave it out")
    return name


def checked_value(name: str, value: Any) -> int | float | str:
    """`value` as a number or text; takes the only element of a tensor or array."""
    if isinstance(value, str):
        if len(value) > TEXT_CHARS:
            raise Misuse(f"log() was given {len(value)} characters for {name}, and takes {TEXT_CHARS}")
        return value
    if not isinstance(value, (int, float)) and hasattr(value, "item"):
        try:
            value = value.item()
        except (TypeError, ValueError, RuntimeError):
            raise Misuse(f"log() was given several numbers for {name}; take one, as in "
                         f"{name}=x.mean()") from None
    if isinstance(value, int) and value.bit_length() < 64:
        return int(value)
    if isinstance(value, float):
        return float(value)
    raise Misuse(f"log() was given {str(value)[:80]!r} for {name}, and takes numbers and texts; "
                 f"leave {name} out of the steps in which it is none")


def _is_finite(value: int | float | str) -> bool:
    return isinstance(value, str) or math.isfinite(value)


class Log:
    """`path`: of the file; None: the run has no directory."""

    def __init__(self, path: pathlib.Path | None):
        self._path = path
        self._on_writer: list[Callable[[], Any]] = []
        self._on_log: list[Callable[[int, dict[str, Any]], Any]] = []
        self.is_writer = False
        self._place: tuple[int, int] | None = None  # generation and step in work
        self._is_open = False  # a slot or an applied step is in work
        self.is_muted = False  # the slot in progress is not kept
        self._values: dict[str, Any] = {}
        self._held: deque[Logged] = deque(maxlen=_HELD_STEPS)
        self._written: Place = (0, False)  # on_log() has had all lines up to here
        self._led: int | None = None  # the generation that `_file` was opened for
        self._file: LogFile | None = None
        self._has_warned = False
        self._has_told_of: set[str] = set()  # names that were nan or infinite

    def on_writer(self, function: Callable[[], Any]) -> None:
        self._on_writer.append(function)

    def on_log(self, function: Callable[[int, dict[str, Any]], Any]) -> None:
        self._on_log.append(function)

    def put(self, values: Mapping[str, Any]) -> None:
        if not self._is_open:
            raise Misuse(_OUTSIDE)
        checked = {checked_name(name): checked_value(name, value) for name, value in values.items()}
        if self.is_muted:
            return
        if len(self._values.keys() | checked.keys()) > MOST_NAMES:
            raise Misuse(f"log() was given more than {MOST_NAMES} names in a step; log fewer")
        self._values |= checked
        self._tell_of({name for name, value in checked.items() if not _is_finite(value)})

    def mute(self) -> None:
        """Values logged in the next slot do not count."""
        self._is_open = self.is_muted = True

    def slot(self, order: Order) -> None:
        """A slot begins. A slot that is computed again for a comparison is muted."""
        self._enter(order.generation, order.task.step)
        self.is_muted = bool(order.is_again)

    def applies(self, order: Order) -> None:
        """A step is about to be applied."""
        self._enter(order.generation, order.step)
        self._is_led_by(order)

    def crosses(self, order: Order) -> None:
        """The code between two epochs is about to run."""
        self._enter(order.generation, order.step)
        self._is_led_by(order)

    def crossed(self, order: Order) -> None:
        self.close()
        self._out(Logged(order.step, self._values, is_edge=True), order)

    def describes(self, order: Order) -> None:
        """A checkpoint may follow. After the last step no later step writes the lines that a dead
        writer owes, so the writer writes them here."""
        if order.is_writer:
            self.mute()  # values of no step
            self._is_led_by(order)
            self.close()
            self._write(order)
            self._sync()

    def applied(self, order: Order) -> None:
        self.close()
        self._out(Logged(order.step + 1, self._values), order)

    def _out(self, logged: Logged, order: Order) -> None:
        if logged.values:
            self._held.append(logged)
            self._values = {}
        if self.is_writer:
            self._write(order, logged.is_edge)
        else:
            self._let_go()

    def close(self) -> None:
        """Nothing is in progress."""
        self._is_open = self.is_muted = False

    def installed(self) -> None:
        """Another state is in place. The lines of the steps before it are in the file, or this
        process never had them."""
        self._held.clear()
        self._values = {}

    def end(self) -> None:
        """The run has ended in this process."""
        self.close()
        self._let_go()

    def _enter(self, generation: int, step: int) -> None:
        if self._place != (generation, step):
            self._place, self._values = (generation, step), {}
        self._is_open, self.is_muted = True, False

    def _is_led_by(self, order: Order) -> None:
        self.is_writer = bool(order.is_writer)
        while self.is_writer and self._on_writer:
            self._on_writer.pop(0)()

    def _write(self, order: Order, in_edge: bool = False) -> None:
        if self._led != order.generation:
            self._open(order.generation, (order.step, not in_edge))
        self._append_held()
        for logged in self._held:
            if logged.place > self._written:
                self._written = logged.place
                for function in self._on_log:
                    function(logged.step, dict(logged.values))

    def _open(self, generation: int, applied: Place) -> None:
        """This process has become the writer, or a new generation has begun. `applied`: the last
        place that the state includes."""
        self._written = min(self._written, applied)
        if self._path is not None:
            self._let_go()
            try:
                self._file = LogFile(self._path, generation, applied,
                                     {logged.place for logged in self._held})
            except OSError as why:  # the next step tries again
                self._written = applied
                return self._warn(why)
            self._written = max(self._written, self._file.last)
            self._tell_of_damage(self._file.damaged)
        self._led = generation

    def _let_go(self) -> None:
        if self._file is not None:
            self._file.close()
        self._file = self._led = None

    def _append_held(self) -> None:
        if self._file is None:
            return
        try:
            for logged in self._held:
                if logged.place > self._file.last:
                    self._file.append(logged.place, logged.line())
            self._has_warned = False
        except OSError as why:
            self._warn(why)

    def _sync(self) -> None:
        if self._file is not None:
            try:
                self._file.sync()
            except OSError as why:
                self._warn(why)

    def _tell_of_damage(self, lines: int) -> None:
        if lines > 0 and self._path is not None:
            print(f"lockstep: {self._path} is damaged: {lines} of its lines are not whole and are kept "
                  f"in {damaged_path(self._path)}; all others stay. Check the disk; `lockstep replay` "
                  "computes the steps without a line again", file=sys.stderr)

    def _tell_of(self, names: set[str]) -> None:
        for name in sorted(names - self._has_told_of):
            print(f"lockstep: log() was given no finite number for {name}; where that happens, its "
                  "value in script_log.jsonl is null", file=sys.stderr)
        self._has_told_of |= names

    def _warn(self, why: OSError) -> None:
        if not self._has_warned:
            print(f"lockstep: {self._path} cannot be written: {why}; the newest {_HELD_STEPS} steps are "
                  "held meanwhile", file=sys.stderr)
        self._has_warned = True


class Logs:
    """The part of a Run that scripts log with."""

    _log: Log

    @property
    def is_writer(self) -> bool:
        """True if this process writes the run's files, since the last applied step. A run has one
        writer at a time; if it dies, another takes over."""
        return self._log.is_writer

    def on_writer(self, function: Callable[[], Any]) -> Callable[[], Any]:
        """Calls `function()` once in each process that is or becomes the writer, before the first
        step that it applies as the writer. Open things there that one process should have (W&B,
        MLflow, a file). The other workers wait for it in that step. Works as a decorator, too."""
        self._log.on_writer(function)
        return function

    def on_log(self, function: Callable[[int, dict[str, Any]], Any]) \
            -> Callable[[int, dict[str, Any]], Any]:
        """Calls `function(step, values)` in the writer for each applied step that logged something.
        Works as a decorator, too."""
        self._log.on_log(function)
        return function

    def log(self, values: Mapping[str, Any] | None = None, /, **named: Any) -> None:
        """Logs values of the step in work, by name: numbers and texts. Once the step is applied,
        the writer puts them into script_log.jsonl and gives them to on_log(). A step that is
        computed again replaces them. If a step logs a name twice, the last value counts.
        """
        self._log.put({**(values or {}), **named})
