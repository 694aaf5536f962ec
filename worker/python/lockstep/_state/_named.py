"""A parameter or buffer, and its name in the state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional

from torch import Tensor, nn

from ._errors import MisuseError
from ._tensors import overlaps_itself, refill


@dataclass(frozen=True)
class NamedParameter:
    """A parameter under its name in the state."""

    name: str
    tensor: nn.Parameter


@dataclass(frozen=True)
class NamedBuffer:
    """A buffer under its name in the state, reached through its module: it may be rebound."""

    name: str
    persistent: bool
    module: nn.Module
    local: str

    @property
    def rule(self) -> Optional[str]:
        """The rule by which a step joins its slots' values (_buffers/_rules.py). None: the script
        may give one."""
        return None

    @property
    def remedy(self) -> str:
        """Advice for a script in which the buffer later gets another shape or dtype."""
        return "let it have its last shape before run.keep(), for example by one batch through the model"

    def was_reset(self) -> bool:
        """Whether the buffer was reset since put_back(), which only steps may do."""
        return False

    def put_back(self, values: Tensor) -> None:
        """Copies `values`, of the buffer's own kind, into it: before a slot, and after a step."""
        self.get().copy_(values)

    def get(self) -> Tensor:
        """The buffer's present tensor."""
        found = self.module._buffers.get(self.local)
        if found is None:
            raise MisuseError(f"The buffer `{self.name}` was removed after run.keep(); "
                              "let it stay, or make it with persistent=False.")
        return found

    def set(self, values: Tensor) -> None:
        """Copies `values` into the buffer, or rebinds it if its shape or dtype differs."""
        now = self.get()
        if now.shape == values.shape and now.dtype == values.dtype and not overlaps_itself(now):
            refill(now, values)
        else:
            self.module._buffers[self.local] = values.detach().clone().to(now.device)
