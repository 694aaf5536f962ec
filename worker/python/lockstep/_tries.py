"""The trial of a run: slots of its loop that are not kept, and the run's beginning (_trial.py)."""
from __future__ import annotations

import time
from typing import Any, Iterator

from . import _core, _numerics, _trial
from ._ahead import Ahead
from ._buffers import Buffers, identity_of
from ._code import CODE
from ._debugger import Watch
from ._device import Device, Places, Staging
from ._epochs import IDENTITY, Epochs
from ._errors import Misuse
from ._eval import Evaluation
from ._gradients import Gradients, dtype_number
from ._job_data import JobData
from ._last import LastStep
from ._log import Log
from ._phases import Phases
from ._scaler import Scaler, refuse_unkept
from ._signals import StopSignals
from ._slot import SlotParts
from ._state import Kept
from ._step import Step

_LONG_TRIAL_S = 10.0


class Tries:
    """The part of a Run that tries its loop out before it begins."""

    _core: _core.Core
    _device: Device
    _job: dict[str, str]
    _script: str | None
    _is_worker: bool
    _kept: Kept
    _log: Log
    _last: LastStep
    _phases: Phases
    _epochs: Epochs | None
    _evaluations: list[Evaluation]
    _clip_norm: float | None
    _buffer_rules: dict[str, str]
    _data_identity: list[tuple[str, str]]
    _steps_per_epoch: int | None
    _parts: SlotParts
    _applier: Step
    _signals: StopSignals
    _watch: Watch | None
    _hint: str | None

    def _slot_of(self, ahead: Ahead | JobData, task: _core.Task,
                 observed: _trial.Observed | None = None) -> Iterator[Any]:
        raise NotImplementedError  # the run's

    def _try_out(self, ahead: Ahead | JobData, first: _core.Task,
                 smallest: _core.Task | None) -> Iterator[Any]:
        """Yields a slot of the first batch, twice, and the run's smallest slot, if that is another,
        in each of its turns; then the run has its layout, and begins."""
        kept, turns = self._kept, range(self._phases.count)
        kept.guard()
        self._state_hash = kept.hash()  # of the script's objects as they were made
        buffers = Buffers(kept.buffers, len(turns), self._buffer_rules, int(self._job["slots"]))
        self._parts = SlotParts(self._core, Gradients(kept.parameters), buffers, Scaler.of(kept),
                                self._phases, None, ())
        other = _trial.other_task(self._core)
        begun = time.monotonic()
        if len(turns) > 1:
            yield from self._try_turns_apart(ahead, first if other is None else other)
        passes: list[list[_trial.Observed]] = []
        modes, left = kept.switches.modes(), ""
        hidden = [_trial.Hidden(kept.modules) for _ in turns]
        while len(passes) < 2 and (not passes or time.monotonic() - begun < _LONG_TRIAL_S):
            passes.append([_trial.Observed() for _ in turns])
            for turn, observed in enumerate(passes[-1]):
                yield from self._try_slot(ahead, _trial.turn_of(self._core, first, turn), observed)
                left = left or kept.switches.mode_left(modes)
                if len(turns) == 1 and len(passes) == 1:
                    kept.include_buffers(buffers.settle())
                if turn == 0 and len(passes) == 1:
                    refuse_unkept(kept)
                hidden[turn].passed("a slot", _trial.AGAINST_HIDDEN)
                observed.keep_statistics(buffers)
                buffers.check_alike(is_other=False)
                buffers.restore()
        if len(passes) == 2 and self._job["exact"] == "1":
            for pair in zip(*passes):
                _trial.compare(*pair, [p.name for p in kept.parameters], left)
        if buffers.alike and other is not None:
            for turn in turns:
                yield from self._try_slot(ahead, _trial.turn_of(self._core, other, turn))
                buffers.check_alike(is_other=True)
                buffers.restore()
        elif int(self._job["slots"]) == 1:
            buffers.has_one_slot()
        buffers.forget_alike()
        if smallest is not None:
            self._hint = _trial.hint_of(smallest)
            for turn in turns:
                yield from self._try_slot(ahead, _trial.turn_of(self._core, smallest, turn))
                buffers.restore()
            self._hint = None
        self._log.close()
        for evaluation in self._evaluations:
            kept.remember()
            evaluation.try_out(self._core, kept, buffers)
            kept.check_same("T" + evaluation.who[1:])
        kept.note()  # an evaluation may have put other weights in, and the right ones back
        self._begin(passes[0])

    def _way_of_gradients(self, memory: _core.Memory) -> Staging | Places | None:
        core, parts = self._core, self._parts
        if self._device.module is not None:
            return Places(self._device, core, memory, parts.gradients.views_of,
                          [shape for _, shape in parts.buffers.rows()])
        return None if self._device.is_host else Staging(self._device, lambda index, grad: core.take(
            index, grad.data_ptr(), dtype_number(grad.dtype), grad.numel()))

    def _try_turns_apart(self, ahead: Ahead | JobData, task: _core.Task) -> Iterator[Any]:
        """Tries each turn of a slot before the turns ahead of it. In a run all slots compute a turn
        before any computes the next, so a turn that uses results of an earlier one fails here."""
        buffers = self._parts.buffers
        for turn in reversed(range(self._phases.count)):
            self._hint = _trial.hint_of_phase(self._phases.name(turn))
            yield from self._try_slot(ahead, _trial.turn_of(self._core, task, turn))
            self._kept.include_buffers(buffers.settle())
        self._hint = None
        buffers.restore()

    def _try_slot(self, ahead: Ahead | JobData, task: _core.Task,
                  observed: _trial.Observed | None = None) -> Iterator[Any]:
        self._log.mute()
        yield from self._slot_of(ahead, task, observed or _trial.Observed())

    def _begin(self, seen: list[_trial.Observed]) -> None:
        """`seen`: by turn."""
        kept, parts = self._kept, self._parts
        names = sorted({name for observed in seen for name in observed.seen.metrics})
        turns_of = [(name, sum((name in observed.seen.metrics) << turn
                               for turn, observed in enumerate(seen))) for name in names]
        if len({observed.seen.has_counts for observed in seen}) > 1:
            raise Misuse("backward(count=...) must be given in every phase or in none")
        if self._device.module is not None:  # now: data processes are forks of this one, too
            self._core.open_device(self._device.module)
            self._device.make_room()
        memory = self._core.layout(
            [(p.name, p.tensor.shape, 0, 0, 0, dtype_number(p.tensor.dtype),
              max(observed.takes.get(i, 0) for observed in seen) != 1)
             for i, p in enumerate(kept.parameters)],
            [(name, shape, 0, 0, 1, 0, False) for name, shape in parts.buffers.rows()],
            turns_of, seen[0].seen.has_counts)
        way = self._way_of_gradients(memory)
        self._parts = parts._replace(seen=tuple(observed.seen for observed in seen),
                                     metrics=tuple(names), way=way)
        self._signals = StopSignals(self._is_worker)
        self._last.begin(names, [observed.seen.metrics for observed in seen],
                         bool(self._evaluations) and self._evaluations[0].knows_right,
                         self._steps_per_epoch)
        self._applier = Step(kept, self._phases, parts.gradients, parts.buffers, memory,
                             self._clip_norm, self._last, self._device,
                             way if isinstance(way, Places) else None)
        self._core.begin(_numerics.fingerprint(_trial.hash_of(seen), self._device),
                         [*kept.identity(), *self._data_identity, *identity_of(self._buffer_rules),
                          *([IDENTITY] if self._epochs is not None else [])],
                         self._state_hash,
                         CODE.hash(self._script) if self._script else "", self._applier.lrs())
        if self._is_worker:
            self._watch = Watch(self._core.set_paused)
