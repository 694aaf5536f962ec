"""The state of a run whose training loop is a script.

Kept (_kept.py) keeps, describes and installs it, from these parts: names of tensors (_named.py,
_modules.py, _metrics.py), values of optimizers (_optimizers.py) and of all else (_others.py), their
canonical JSON (_objects.py), all-or-nothing installation (_install.py), switches between two steps
(_switches.py), facts that may not change in a run (_identity.py, _fixed.py), and guards
(_guard.py).
"""

from ._errors import MisuseError, StateError
from ._kept import Kept, times_due
from ._metrics import numbers_of
from ._named import NamedBuffer, NamedParameter
from ._tensors import Entry, in_memory, same_bits, why_not

__all__ = ["Entry", "Kept", "MisuseError", "NamedBuffer", "NamedParameter", "StateError",
           "in_memory", "numbers_of", "same_bits", "times_due", "why_not"]
