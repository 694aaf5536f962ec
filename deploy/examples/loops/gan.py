#!/usr/bin/env python3
"""A DCGAN: a generator learns to draw pictures like Fashion-MNIST's, or like shapes that images.py
draws. Two networks, each with an optimizer, take turns on every batch.

    lockstep run gan.py --workers 2 -- --data /usr/share/datasets/fashion-mnist --save drawn.pgm
    python gan.py --data /usr/share/datasets/fashion-mnist

Both give the same weights. 11 lines are not plain PyTorch: the block, and those that name lockstep
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
from images import fashion, shapes  # the pictures of the example beside this one
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits as cross_entropy

LATENT = 32  # numbers from which a picture is drawn


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
        nn.ConvTranspose2d(LATENT, 2 * width, 7, bias=False), nn.BatchNorm2d(2 * width), nn.ReLU(),
        nn.ConvTranspose2d(2 * width, width, 4, 2, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(),
        nn.ConvTranspose2d(width, 1, 4, 2, 1), nn.Tanh())


def discriminator(width):
    return nn.Sequential(
        nn.Conv2d(1, width, 4, 2, 1), nn.LeakyReLU(0.2),
        nn.Conv2d(width, 2 * width, 4, 2, 1, bias=False), nn.BatchNorm2d(2 * width), nn.LeakyReLU(0.2),
        nn.Conv2d(2 * width, 1, 7), nn.Flatten(0))


def begin_like_dcgan(part):
    if isinstance(part, (nn.Conv2d, nn.ConvTranspose2d)):
        nn.init.normal_(part.weight, 0.0, 0.02)


@torch.no_grad()
def draw(G, count):
    G.eval()
    return G(torch.randn(count, LATENT, 1, 1, generator=torch.Generator().manual_seed(3)))


def save(pictures, path):
    """Eight in a row."""
    sheet = pictures.view(-1, 8, 28, 28).transpose(1, 2).reshape(-1, 8 * 28)
    path.write_bytes(b"P5 %d %d 255\n" % (sheet.shape[1], sheet.shape[0])
                     + ((sheet + 1) * 127.5).to(torch.uint8).numpy().tobytes())


def main():
    args = arguments()
    images = (fashion(args.data, "train") if args.data else shapes(args.samples, 1))[0]
    data = images[:args.samples].float() / 127.5 - 1
    run = lockstep.start()
    G, D = generator(args.width).apply(begin_like_dcgan), discriminator(args.width).apply(begin_like_dcgan)
    d = torch.optim.Adam(D.parameters(), args.lr, betas=(0.5, 0.999))
    g = torch.optim.Adam(G.parameters(), args.lr, betas=(0.5, 0.999))
    run.keep(G=G, D=D, d=d, g=g)
    for phase, real in run.batches(data, phases=("d", "g")):
        drawn, real_label = G(torch.randn(len(real), LATENT, 1, 1)), torch.ones(len(real))
        if phase == "d":
            run.backward(cross_entropy(D(real), real_label)
                         + cross_entropy(D(drawn.detach()), 1 - real_label))
        else:
            logits = D(drawn)
            fooled = (logits > 0).float().mean()
            run.backward(cross_entropy(logits, real_label), metrics={"fooled": fooled})
    pictures = draw(G, 64)
    if args.save:
        save(pictures, args.save)
    print(f"brightness {pictures.mean():.4f} drawn, {data.mean():.4f} real")


if __name__ == "__main__":
    main()
