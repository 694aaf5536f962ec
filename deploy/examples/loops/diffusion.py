#!/usr/bin/env python3
r"""A diffusion model (DDPM): a small U-Net learns to take noise out of pictures; an average of its weights
draws some at the end.

    lockstep run diffusion.py --workers 2 -- --data /usr/share/datasets/fashion-mnist --save drawn.pgm
    python diffusion.py --data /usr/share/datasets/fashion-mnist

Both give the same weights. Without a path the script draws shapes to learn from. For pictures that look
real, train longer and wider:

    lockstep run diffusion.py --workers 8 train.epochs=100 -- --data /usr/share/datasets/fashion-mnist \
        --samples 60000 --width 64 --timesteps 1000 --ema-decay 0.9995 --save drawn.pgm

11 lines are not plain PyTorch: the block, and those that name lockstep or `run`.
"""
# /// lockstep
# job: diffusion
# train: {global_batch: 128, slots: 4, epochs: 5}
# ///
import argparse
import math
import pathlib

import lockstep
import torch
from pictures import pixels, save_sheet
from torch import nn
from torch.nn import functional as F
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--data", type=pathlib.Path, help="a directory with Fashion-MNIST's files (.gz or not)")
    parser.add_argument("--samples", type=int, default=6000, help="pictures that train")
    parser.add_argument("--width", type=int, default=16, help="channels of the first layers, a multiple of 4")
    parser.add_argument("--timesteps", type=int, default=200)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--ema-decay", type=float, default=0.98, help="of the average, at each step")
    parser.add_argument("--draw", type=int, default=16, help="pictures at the end, a multiple of 8")
    parser.add_argument("--save", type=pathlib.Path, help="drawn pictures, as a PGM file")
    return parser.parse_args()


class Residual(nn.Module):
    def __init__(self, inputs, outputs, width):
        super().__init__()
        self.before = nn.Sequential(nn.GroupNorm(min(4, inputs), inputs), nn.SiLU(),
                                    nn.Conv2d(inputs, outputs, 3, padding=1))
        self.time = nn.Linear(4 * width, outputs)
        self.after = nn.Sequential(nn.GroupNorm(4, outputs), nn.SiLU(), nn.Dropout(0.1),
                                   nn.Conv2d(outputs, outputs, 3, padding=1))
        self.skip = nn.Conv2d(inputs, outputs, 1)

    def forward(self, x, time):
        return self.skip(x) + self.after(self.before(x) + self.time(time)[:, :, None, None])


class UNet(nn.Module):
    """Takes pictures whose sides are multiples of 4."""

    def __init__(self, width):
        super().__init__()
        self.width = width
        self.time = nn.Sequential(nn.Linear(width, 4 * width), nn.SiLU(), nn.Linear(4 * width, 4 * width))
        self.first = nn.Conv2d(1, width, 3, padding=1)
        self.down = nn.ModuleList([Residual(width, width, width), Residual(width, 2 * width, width)])
        self.middle = Residual(2 * width, 2 * width, width)
        self.up = nn.ModuleList([Residual(4 * width, width, width), Residual(2 * width, width, width)])
        self.last = nn.Conv2d(width, 1, 3, padding=1)

    def forward(self, x, t):
        angles = t[:, None] * torch.exp(torch.arange(0, self.width, 2) * (-math.log(10000) / self.width))
        time = self.time(torch.cat([angles.sin(), angles.cos()], 1))
        x, skips = self.first(x), []
        for block in self.down:
            skips.append(block(x, time))
            x = F.avg_pool2d(skips[-1], 2)
        x = self.middle(x, time)
        for block in self.up:
            x = block(torch.cat([F.interpolate(x, scale_factor=2), skips.pop()], 1), time)
        return self.last(x)


class Diffusion:
    """The noise schedule: how much of a picture is left after t steps, and the way back."""

    def __init__(self, timesteps):
        scale = 1000 / timesteps  # the usual schedule, whatever the number of steps
        self.betas = torch.linspace(1e-4 * scale, 0.02 * scale, timesteps).clamp(max=0.999)
        self.alphas_bar = torch.cumprod(1 - self.betas, 0)

    def add_noise(self, x, noise, t):
        left = self.alphas_bar[t][:, None, None, None]
        return left.sqrt() * x + (1 - left).sqrt() * noise

    @torch.no_grad()
    def sample(self, model, count):
        model.eval()
        draw = torch.Generator().manual_seed(3)
        x = torch.randn(count, 1, 28, 28, generator=draw)
        for t in reversed(range(len(self.betas))):
            beta, left = self.betas[t], self.alphas_bar[t]
            before = self.alphas_bar[t - 1] if t > 0 else torch.tensor(1.0)
            noise = model(x, torch.full((count,), t))
            picture = ((x - (1 - left).sqrt() * noise) / left.sqrt()).clamp(-1, 1)
            x = (before.sqrt() * beta * picture + (1 - beta).sqrt() * (1 - before) * x) / (1 - left)
            if t > 0:
                x += (beta * (1 - before) / (1 - left)).sqrt() * torch.randn(x.shape, generator=draw)
        return x


def main():
    args = arguments()
    data = pixels(args.data, args.samples)
    diffusion = Diffusion(args.timesteps)
    run = lockstep.start()
    model = UNet(args.width)
    ema = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(args.ema_decay))
    optimizer = torch.optim.AdamW(model.parameters(), args.lr)
    run.keep(model=model, ema=ema, optimizer=optimizer, clip_norm=1.0,
             after_step=lambda: ema.update_parameters(model))
    for x in run.batches(data):
        t = torch.randint(args.timesteps, (len(x),))
        noise = torch.randn_like(x)
        run.backward(F.mse_loss(model(diffusion.add_noise(x, noise, t), t), noise))
    drawn = diffusion.sample(ema, args.draw)
    if args.save and run.is_writer:
        save_sheet(drawn, args.save)
    print(f"brightness {drawn.mean():.4f} drawn, {data.mean():.4f} real")


if __name__ == "__main__":
    main()
