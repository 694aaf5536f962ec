"""Datasets that are rows of tensors: the batch of a slot is one selection from each tensor.

Sample by sample each would be seeded and stacked, which takes longer than a small model's step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.utils import data as torch_data


class Rows:
    """A TensorDataset, or a Subset of one (of one ...), that torch's default_collate makes batches of.

    The same bits as sample by sample: neither draws a random number.
    """

    def __init__(self, tensors: list[torch.Tensor], rows: torch.Tensor | None) -> None:
        self._tensors = tensors
        self._rows = rows  # Of each sample; None: its own number.

    @staticmethod
    def of(dataset: Any, collate: Callable[[list[Any]], Any]) -> Rows | None:
        """None: it is none, or holds what only its own functions know how to take."""
        if collate is not torch_data.default_collate:
            return None
        rows: torch.Tensor | None = None
        while type(dataset) is torch_data.Subset:
            try:
                inner = torch.as_tensor(dataset.indices, dtype=torch.int64)
                rows = inner if rows is None else inner[rows]
            except (IndexError, RuntimeError, TypeError, ValueError):
                return None
            dataset = dataset.dataset
        if type(dataset) is not torch_data.TensorDataset:
            return None
        tensors = [tensor.detach() for tensor in dataset.tensors]
        length = len(dataset)
        if rows is not None and (rows.dim() != 1 or rows.numel() == 0 or
                                 int(rows.min()) < 0 or int(rows.max()) >= length):
            return None
        if not all(type(tensor) is torch.Tensor and tensor.layout is torch.strided and
                   tensor.device.type == "cpu" and not tensor.is_quantized and
                   not tensor.is_nested for tensor in tensors):
            return None
        found = Rows(tensors, rows)
        try:
            found.take([0])
        except (NotImplementedError, RuntimeError):  # A dtype without selection.
            return None
        return found

    def take(self, indices: Sequence[int]) -> list[torch.Tensor]:
        """What collate returns for these samples, in memory that nobody else has."""
        rows = torch.tensor(indices, dtype=torch.int64)
        if self._rows is not None:
            rows = self._rows[rows]
        return [tensor.index_select(0, rows).contiguous() for tensor in self._tensors]
