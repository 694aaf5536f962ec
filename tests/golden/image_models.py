"""The image models of losses.py and of benchmarks. Needs torch alone."""
import torch
from torch import nn


def mlp(norm):
    def hidden(n, width):
        return [nn.Linear(n, width)] + ([nn.BatchNorm1d(width)] if norm else []) + [nn.ReLU()]

    return nn.Sequential(nn.Flatten(), *hidden(784, 256), *hidden(256, 128), nn.Linear(128, 10))


def cnn(norm):
    def block(n, width):
        conv = [nn.Conv2d(n, width, 3)] + ([nn.BatchNorm2d(width)] if norm else [])
        return conv + [nn.ReLU(), nn.MaxPool2d(2)]

    return nn.Sequential(
        *block(1, 16), *block(16, 32), nn.Flatten(), nn.Linear(800, 64), nn.ReLU(), nn.Linear(64, 10)
    )


class Block(nn.Module):
    """A block of a residual network, with the names and the order of torchvision's."""

    def __init__(self, channels, width, out, stride):
        super().__init__()
        shapes = [(channels, width, 3, stride), (width, out, 3, 1)]
        if out != width:
            shapes = [(channels, width, 1, 1), (width, width, 3, stride), (width, out, 1, 1)]
        for i, (a, b, kernel, s) in enumerate(shapes, 1):
            self.add_module(f"conv{i}", nn.Conv2d(a, b, kernel, s, kernel // 2, bias=False))
            self.add_module(f"bn{i}", nn.BatchNorm2d(b))
        self.convs = len(shapes)
        self.downsample = None
        if stride != 1 or channels != out:
            self.downsample = nn.Sequential(nn.Conv2d(channels, out, 1, stride, bias=False),
                                            nn.BatchNorm2d(out))

    def forward(self, x):
        h = x
        for i in range(1, self.convs + 1):
            h = self.get_submodule(f"bn{i}")(self.get_submodule(f"conv{i}")(h))
            h = torch.relu(h) if i < self.convs else h
        return torch.relu(h + (self.downsample(x) if self.downsample else x))


def resnet(blocks, expansion, imagenet_stem):
    layers = [nn.Conv2d(1, 64, 7, 2, 3, bias=False) if imagenet_stem
              else nn.Conv2d(1, 64, 3, 1, 1, bias=False), nn.BatchNorm2d(64), nn.ReLU()]
    layers += [nn.MaxPool2d(3, 2, 1)] if imagenet_stem else []
    channels = 64
    for layer, count in enumerate(blocks):
        width = 64 * 2**layer
        for i in range(count):
            stride = 2 if i == 0 and layer > 0 else 1
            layers.append(Block(channels, width, width * expansion, stride))
            channels = width * expansion
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 10))
