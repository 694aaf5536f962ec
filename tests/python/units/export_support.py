"""The base of the tests of lockstep.export_program."""

from __future__ import annotations

import os
import pathlib
import tempfile
import unittest
from typing import Any

import torch
from torch import nn

import lockstep


class ExportTest(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        torch.manual_seed(1)
        self.example = torch.randn(4, 1, 8, 8)

    def saved(self, model: nn.Module, example: Any = None, **options: Any) -> tuple[str, str]:
        return lockstep.export_program(model, self.example if example is None else example,
                                       self.folder / "m.pt2", **options)

    def refused(self, model: Any, *words: str, example: Any = None, **options: Any) -> None:
        """Checks that nothing is saved, and that the message has the words."""
        with self.assertRaises(lockstep.Misuse) as refused:
            self.saved(model, example, **options)
        for word in words:
            self.assertIn(word, str(refused.exception))
        self.assertEqual(os.listdir(self.folder), [])


__all__ = ["ExportTest", "unittest"]
