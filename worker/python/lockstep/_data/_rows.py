"""Datasets that are rows of tensors: the batch of a slot is one selection from each tensor.

To seed and stack them sample by sample takes longer than a small model's step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.utils import data as torch_data


class Rows:
    """A TensorDataset, or a Subset of one (of one ...), that torch's default_collate makes batches of.

    A batch has the same bits as sample by sample: neither way draws a random number.
    """

    def __init__(self, tensors: list[torch.Tensor], rows: torch.Tensor | None) -> None:
        self._tensors = tensors
        self._rows = rows  # The row of each sample; None: its own number.

    @staticmethod
    def of(dataset: Any, collate: Callable[[list[Any]], Any]) -> Rows | None:
        """None if `dataset` is neither, or if only its own functions can read what it holds."""
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
        """The value that collate returns for these samples, in memory that nothing else uses."""
        rows = torch.tensor(indices, dtype=torch.int64)
        if self._rows is not None:
            rows = self._rows[rows]
        return [tensor.index_select(0, rows).contiguous() for tensor in self._tensors]
