"""lockstep.export_program: programs for `model.name: exported`, saved only where they train as the
model does."""
from ._programs import save_programs

__all__ = ["save_programs"]
