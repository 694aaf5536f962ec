"""Says that clipping in a loop's body finds no gradients.

run.backward() takes gradients as they come, and leaves `.grad` None. torch's functions pass over such
parameters without a word, and the run would train unclipped.
"""

from __future__ import annotations

import functools
import sys
from typing import Any, Callable

from torch import Tensor
from torch.nn import utils

from ._errors import MisuseError

# torch may lack some of them.
_FUNCTIONS = ("clip_grad_norm_", "clip_grad_value_", "clip_grads_with_norm_")


class Clipping:
    """Replaces torch's functions in every module that has them by their names, until remove().

    `parameters`: ids of the parameters that it refuses, unless `may_clip()`. Main thread only.
    """

    def __init__(self, parameters: set[int], may_clip: Callable[[], bool]) -> None:
        self._parameters = parameters
        self._may_clip = may_clip
        self._replaced: list[tuple[dict[str, Any], str, Any]] = []
        for name in _FUNCTIONS:
            original = getattr(utils, name, None)
            if original is not None:
                self._replace(name, original, self._guarded(name, original))

    def remove(self) -> None:
        """Restores each module's functions. A module that was imported meanwhile keeps ours, which
        then refuse nothing."""
        self._parameters = set()
        for namespace, name, original in self._replaced:
            namespace[name] = original
        self._replaced = []

    def _replace(self, name: str, original: Any, guarded: Any) -> None:
        for module in list(sys.modules.values()):  # many import the function itself
            namespace = getattr(module, "__dict__", None)
            if isinstance(namespace, dict) and namespace.get(name) is original:
                namespace[name] = guarded
                self._replaced.append((namespace, name, original))

    def _guarded(self, name: str, original: Any) -> Any:
        @functools.wraps(original)
        def clip(parameters: Any, *args: Any, **kwargs: Any) -> Any:
            given = [parameters] if isinstance(parameters, Tensor) else list(parameters)
            if not self._may_clip() and any(id(p) in self._parameters for p in given):
                raise MisuseError(
                    f"The loop body calls `{name}()`, which finds no gradients, since run.backward() "
                    "takes them to be summed over the whole step: delete the call, and give "
                    "run.keep(clip_norm=…) the norm, or clip in run.keep(update=…).")
            return original(given, *args, **kwargs)
        return clip
