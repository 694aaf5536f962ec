#!/usr/bin/env python3
"""Remakes two_inputs.pt2 with PyTorch 2.11: a model of an image and a depth map of 4 x 4 that
learns a mask and a number.

    python3 make.py [DIRECTORY]        (this folder by default)
"""
import importlib.util
import pathlib
import sys

import torch
from torch import nn
from torch.export import Dim, export
from torch.nn import functional

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "exported"))
_spec = importlib.util.spec_from_file_location("exported", HERE.parent / "exported" / "make.py")
exported = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(exported)

SIDE, BATCH = 4, 3


class TwoInputs(nn.Module):
    """The inputs are found by their names, in whatever order."""

    def __init__(self):
        super().__init__()
        self.body = nn.Linear(2 * SIDE * SIDE, SIDE * SIDE + 1)

    def forward(self, depth, pixels, price, mask):
        out = self.body(torch.cat([pixels.flatten(1), depth.flatten(1)], 1))
        wanted = mask.flatten(1).float()
        of_mask = functional.binary_cross_entropy_with_logits(out[:, 1:], wanted, reduction="none")
        error = (out[:, 0] - price) ** 2
        return {"loss": of_mask.mean(1) + error, "error": error}


def main():
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else HERE
    torch.manual_seed(5)
    plane = torch.zeros(BATCH, 1, SIDE, SIDE)
    example = (plane, plane, torch.zeros(BATCH), torch.zeros(BATCH, SIDE, SIDE, dtype=torch.uint8))
    dim = Dim("batch", min=1, max=64)
    program = export(TwoInputs(), example, dynamic_shapes=tuple({0: dim} for _ in example))
    exported.write(folder / "two_inputs.pt2", exported.contents(program))


if __name__ == "__main__":
    main()
