"""Buffers of the kept modules: how a step joins the values that its slots leave in them.

Buffers (_buffers.py) combines the parts. _rules.py: the rules that a script gives by name;
_ruled.py: buffers that have one; _joining.py: the arithmetic of the rules; _quantisation.py: rules
for torch's observers and fake quantisation.
"""

from ._buffers import Buffers
from ._rules import identity_of, rules_of

__all__ = ["Buffers", "identity_of", "rules_of"]
