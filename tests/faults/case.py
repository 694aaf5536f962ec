"""A case of the table."""
import dataclasses
import typing


@dataclasses.dataclass
class Case:
    name: str  # FAMILY/WHAT/HOW/WHEN
    play: typing.Callable  # on a Stage; raises Defect or Skip
    limit_s: int = 900  # beyond all bounds of a case: past it the case itself hangs

    @property
    def family(self):
        return self.name.split("/")[0]
