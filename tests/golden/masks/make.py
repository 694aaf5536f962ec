#!/usr/bin/env python3
"""Remakes unet.pt2 and unet.predict.pt2 with PyTorch 2.11 and torchvision: the net of
deploy/examples/unet_masks.py, small, for images of 3 x 24 x 24 with masks.

    python3 make.py [DIRECTORY]        (this folder by default)"""
import importlib.util
import pathlib
import sys

import torch
from torch.export import Dim, export

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
SIDE, WIDTH = 24, 4


def module(name, path):
    spec = importlib.util.spec_from_file_location(name, path)
    made = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(path.parent))
    spec.loader.exec_module(made)
    return made


class Logits(torch.nn.Module):
    """For predictions: a map of one logit, (B, 1, H, W)."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, x):
        return self.model(x)[:, None]


def main():
    sys.path.append(str(ROOT / "worker/python"))  # which the example imports
    example = module("unet_masks", ROOT / "deploy/examples/unet_masks.py")
    exported = module("exported", HERE.parent / "exported/make.py")
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else HERE
    torch.manual_seed(1)
    batch = Dim("batch", min=1, max=64)
    net = example.UNet(WIDTH)
    program = export(example.DiceAndBce(net),
                     (torch.rand(2, 3, SIDE, SIDE),
                      torch.zeros(2, SIDE, SIDE, dtype=torch.uint8)),
                     dynamic_shapes=({0: batch}, {0: batch}))
    exported.write(folder / "unet.pt2", exported.contents(program))
    predict = export(Logits(net).eval(), (torch.rand(2, 3, SIDE, SIDE),),
                     dynamic_shapes=({0: batch},))
    exported.write(folder / "unet.predict.pt2", exported.contents(predict))


if __name__ == "__main__":
    main()
