"""Writes programs with lockstep.export_program into argv[1], for images (B, 1, 8, 8) in ten classes;
prints the keys of `model` of a job for each."""
import json
import pathlib
import sys

import torch
import torchvision
import transformers
from torch import nn
from torch.nn import functional as F

import lockstep


class Coloured(nn.Module):
    """A model of three channels on one."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, x):
        return self.model(x.expand(-1, 3, -1, -1))


class Logits(nn.Module):
    """The logits of a model of transformers."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, x):
        return self.model(pixel_values=x).logits


class WithLoss(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = nn.utils.parametrizations.weight_norm(nn.Linear(64, 32))
        self.drop, self.out = nn.Dropout(0.1), nn.Linear(32, 10)

    def forward(self, x, *, label):
        logits = self.out(self.drop(F.relu(self.hidden(x.flatten(1)))))
        return {"loss": F.multi_margin_loss(logits, label, reduction="none"),
                "hit": (logits.argmax(1) == label).float()}


def resnet():
    return Coloured(torchvision.models.ResNet(torchvision.models.resnet.BasicBlock, [1, 1, 1, 1],
                                              num_classes=10))


def vit():
    return Logits(transformers.ViTForImageClassification(transformers.ViTConfig(
        hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64, image_size=8,
        patch_size=4, num_channels=1, num_labels=10, hidden_dropout_prob=0.1)))


def encoder():
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    return nn.Sequential(nn.Flatten(1, 2), nn.TransformerEncoder(layer, 2), nn.Flatten(),
                         nn.Linear(64, 10))


def main():
    folder = pathlib.Path(sys.argv[1])
    images, labels = torch.randn(6, 1, 8, 8), torch.zeros(6, dtype=torch.long)
    told = {}
    for name, make, example, least in (
            ("resnet", resnet, images, 2),  # its last norms see one pixel a sample
            ("vit", vit, images, 1), ("encoder", encoder, images, 1),
            ("own_loss", WithLoss, {"x": images, "label": labels}, 1)):
        torch.manual_seed(1)
        names = lockstep.export_program(make(), example, folder / name, least_samples=least)
        told[name] = dict(zip(("path", "eval_path"), names, strict=True))
    print(json.dumps(told))


main()
