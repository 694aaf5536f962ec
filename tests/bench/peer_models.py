"""The models and data of the PyTorch side of comparisons.

The models come from tests/golden, where Lockstep's are checked against them, written as a careful
user of PyTorch would run them: GPT-2 with scaled_dot_product_attention.
"""
import glob
import os
import sys

import numpy as np
import torch
from torch import nn

from fused_gpt2 import SIZES, fused_gpt2

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "golden"))
import gpt2  # noqa: E402
import losses  # noqa: E402
from order import read_idx  # noqa: E402

TEXT_VOCAB = 256  # text goes in byte by byte


def make_model(name, size="d12", block=128):
    if name == "gpt2":
        model = fused_gpt2(size, block, TEXT_VOCAB)
        gpt2.initialise(model, SIZES[size][0], seed=1)
        return model
    if name == "resnet18":
        return losses.resnet([2, 2, 2, 2], 1, imagenet_stem=False)
    return {"mlp": losses.mlp, "cnn": losses.cnn}[name](norm=False)


def loss_of(name, logits, labels):
    return gpt2.loss_of(logits, labels) if name == "gpt2" else nn.functional.cross_entropy(
        logits, labels)


def images(directory):
    """All images: floats (N, 1, H, W) with zero mean and unit variance, and labels (N)."""
    pixels = read_idx(directory, "train-images-idx3-ubyte")
    labels = read_idx(directory, "train-labels-idx1-ubyte")
    mean, std = np.float32(pixels.mean() / 255), np.float32(pixels.std() / 255)
    x = (pixels[:, None].astype(np.float32) / np.float32(255) - mean) / std
    return torch.from_numpy(x), torch.from_numpy(labels.astype(np.int64))


def read_text(path):
    """Reads a file, or all files *.txt of a directory in the order of their names."""
    files = sorted(glob.glob(os.path.join(path, "*.txt"))) if os.path.isdir(path) else [path]
    texts = []
    for name in files:
        with open(name, "rb") as f:
            texts.append(f.read())
    return b"".join(texts)


def sequences(path, block):
    """Tokens (N, block) and the token that follows each of them (N, block)."""
    text = np.frombuffer(read_text(path), np.uint8).astype(np.int64)
    n = (len(text) - 1) // block
    return (torch.from_numpy(text[: n * block].reshape(n, block)),
            torch.from_numpy(text[1 : n * block + 1].reshape(n, block)))


def training_data(name, path, block):
    return sequences(path, block) if name == "gpt2" else images(path)
