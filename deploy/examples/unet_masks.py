#!/usr/bin/env python3
"""Makes pictures of discs with their masks, and a small U-Net with a loss of its own on both.

    python3 unet_masks.py [--side 64] [--width 16] [--pictures 256]

writes shapes/{train,val}/images/*.png, shapes/{train,val}/masks/*.png and unet.pt2, by the package lockstep."""
import argparse
import pathlib

import lockstep
import torch
from torch import nn
from torch.nn import functional as F
from torchvision.io import write_png


class Block(nn.Sequential):
    def __init__(self, inputs, outputs):
        super().__init__(nn.Conv2d(inputs, outputs, 3, padding=1), nn.GroupNorm(4, outputs),
                         nn.ReLU(), nn.Conv2d(outputs, outputs, 3, padding=1), nn.ReLU())


class UNet(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.top, self.bottom = Block(3, width), Block(width, 2 * width)
        self.up, self.out = Block(3 * width, width), nn.Conv2d(width, 1, 1)

    def forward(self, x):
        top = self.top(x)
        bottom = F.interpolate(self.bottom(F.max_pool2d(top, 2)), scale_factor=2)
        return self.out(self.up(torch.cat([top, bottom], 1)))[:, 0]


class DiceAndBce(nn.Module):
    """Takes a batch of images and of masks (B, H, W), and gives the loss of each sample."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, x, masks):
        logits, wanted = self.model(x), (masks > 0).float()
        bce = F.binary_cross_entropy_with_logits(logits, wanted, reduction="none").mean((1, 2))
        found = logits.sigmoid()
        dice = (2 * (found * wanted).sum((1, 2)) + 1) / (found.sum((1, 2)) + wanted.sum((1, 2)) + 1)
        return {"loss": bce + 1 - dice, "dice": dice}


def picture(side, draw):
    """A disc of a colour on another colour, with noise; 255 in its mask."""
    y, x = torch.meshgrid(torch.arange(side), torch.arange(side), indexing="ij")
    row, column, radius = (torch.rand(3, generator=draw) * side * 0.4 + side * 0.1).tolist()
    disc = (y - row - side / 10) ** 2 + (x - column - side / 10) ** 2 < (radius / 1.5) ** 2
    colours = torch.rand(2, 3, 1, 1, generator=draw) * 200
    image = torch.where(disc, colours[0], colours[1])
    image = image + torch.rand(3, side, side, generator=draw) * 55
    return image.to(torch.uint8), disc[None].to(torch.uint8) * 255


def main():
    arguments = argparse.ArgumentParser()
    for name, value in (("side", 64), ("width", 16), ("pictures", 256)):
        arguments.add_argument(f"--{name}", type=int, default=value)
    options = arguments.parse_args()
    draw = torch.Generator().manual_seed(1)
    for split, count in (("train", options.pictures), ("val", options.pictures // 4)):
        for kind in ("images", "masks"):
            pathlib.Path("shapes", split, kind).mkdir(parents=True, exist_ok=True)
        for i in range(count):
            image, mask = picture(options.side, draw)
            write_png(image, f"shapes/{split}/images/{i:04}.png")
            write_png(mask, f"shapes/{split}/masks/{i:04}.png")
    torch.manual_seed(1)
    example = (torch.rand(4, 3, options.side, options.side),
               torch.zeros(4, options.side, options.side, dtype=torch.uint8))
    lockstep.export_program(DiceAndBce(UNet(options.width)), example, "unet.pt2")


if __name__ == "__main__":
    main()
