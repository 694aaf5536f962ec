"""How far a script is."""
from __future__ import annotations

import enum


class Stage(enum.Enum):
    BEFORE = "before the loop"
    TRIAL = "in the trial of the loop"
    TRAINING = "in the loop"
    ENDED = "behind the loop"
