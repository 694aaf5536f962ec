#!/usr/bin/env python3
"""A DCGAN: a generator learns to draw pictures like Fashion-MNIST's, or like shapes that the script
draws. Two networks, each with an optimizer, take turns on every batch.

    lockstep run gan.py --workers 2 -- --data /usr/share/datasets/fashion-mnist --save drawn.pgm
    python gan.py --data /usr/share/datasets/fashion-mnist

Both give the same weights. 12 lines are not plain PyTorch: the block, and those that name lockstep
or `run`.
"""
# /// lockstep
# job: gan
# train: {global_batch: 128, slots: 4, epochs: 5}
# checkpoint: {every_steps: 100}
# ///
import argparse
import pathlib

import lockstep
import torch
from pictures import pixels, save_sheet
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits as criterion

NZ = 32  # numbers from which a picture is drawn


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--data", type=pathlib.Path,
                        help="a directory with Fashion-MNIST's files (.gz or not)")
    parser.add_argument("--samples", type=int, default=6000, help="pictures that train")
    parser.add_argument("--width", type=int, default=32, help="channels of the largest layers")
    parser.add_argument("--lr", type=float, default=2e-4)
    parser.add_argument("--save", type=pathlib.Path, help="drawn pictures, as a PGM file")
    return parser.parse_args()


def generator(width):
    return nn.Sequential(
        nn.ConvTranspose2d(NZ, 2 * width, 7, bias=False), nn.BatchNorm2d(2 * width), nn.ReLU(),
        nn.ConvTranspose2d(2 * width, width, 4, 2, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(),
        nn.ConvTranspose2d(width, 1, 4, 2, 1), nn.Tanh())


def discriminator(width):
    return nn.Sequential(
        nn.Conv2d(1, width, 4, 2, 1), nn.LeakyReLU(0.2),
        nn.Conv2d(width, 2 * width, 4, 2, 1, bias=False), nn.BatchNorm2d(2 * width), nn.LeakyReLU(0.2),
        nn.Conv2d(2 * width, 1, 7), nn.Flatten(0))


def weights_init(part):
    if isinstance(part, (nn.Conv2d, nn.ConvTranspose2d)):
        nn.init.normal_(part.weight, 0.0, 0.02)


def main():
    args = arguments()
    data = pixels(args.data, args.samples)
    fixed_noise = torch.randn(64, NZ, 1, 1, generator=torch.Generator().manual_seed(3))
    run = lockstep.start()
    netG, netD = generator(args.width).apply(weights_init), discriminator(args.width).apply(weights_init)
    optimizerD = torch.optim.Adam(netD.parameters(), args.lr, betas=(0.5, 0.999))
    optimizerG = torch.optim.Adam(netG.parameters(), args.lr, betas=(0.5, 0.999))
    run.keep(netG=netG, netD=netD, D=optimizerD, G=optimizerG)
    for phase, real in run.batches(data, phases=("D", "G")):
        fake = netG(torch.randn(len(real), NZ, 1, 1))
        real_label, fake_label = torch.ones(len(real)), torch.zeros(len(real))
        if phase == "D":
            run.backward(criterion(netD(real), real_label) + criterion(netD(fake.detach()), fake_label))
        else:
            output = netD(fake)
            fooled = (output > 0).float().mean()
            run.backward(criterion(output, real_label), metrics={"fooled": fooled})
    netG.eval()
    with torch.no_grad():
        fake = netG(fixed_noise)
    if args.save and run.is_writer:
        save_sheet(fake, args.save)
    print(f"brightness {fake.mean():.4f} drawn, {data.mean():.4f} real")


if __name__ == "__main__":
    main()
