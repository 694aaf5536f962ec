#!/usr/bin/env python3
"""Makes gpt2.json: what PyTorch's own modules make of a small GPT-2.

First logits, loss and gradients of two sequences under weights that leave no part of the model out;
then the losses of a training on gpt2_text.txt, byte by byte, from Lockstep's initial weights and
batches (order.py). In fp32 on one thread. Needs torch, numpy and xxhash.

    python3 gpt2.py > gpt2.json
"""
import json
import os
import sys

import numpy as np
import torch
import xxhash

from gpt2_model import Gpt2, loss_of
from order import MASK, EpochOrder, normal_weights

SMALL = {"n_layer": 2, "n_head": 2, "n_embd": 8, "block": 6, "vocab": 11}
SMALL_SEED, SMALL_STD = 5, 0.3
SMALL_BATCH = 2

TRAINED = {"n_layer": 2, "n_head": 4, "n_embd": 32, "block": 32, "vocab": 256}
SEED, BATCH, STEPS, LR, DECAY = 1, 16, 20, 3e-3, 0.1


def small():
    model = Gpt2(**SMALL)
    for i, p in enumerate(model.parameters()):
        p.data = torch.from_numpy(normal_weights(p.shape, SMALL_STD, SMALL_SEED, i))
    tokens = np.arange(SMALL_BATCH * (SMALL["block"] + 1)) ** 2 % SMALL["vocab"]
    tokens = torch.from_numpy(tokens.reshape(SMALL_BATCH, -1))
    logits = model(tokens[:, :-1])
    loss = loss_of(logits, tokens[:, 1:])
    loss.backward()
    return {
        "model": SMALL, "seed": SMALL_SEED, "std": SMALL_STD, "tokens": tokens.tolist(),
        "logits": numbers(logits), "loss": loss.item(),
        "parameters": [{"name": name, "shape": list(p.shape), "gradient": numbers(p.grad)}
                       for name, p in model.named_parameters()]}


def numbers(tensor):
    return [float(f"{x:.9g}") for x in tensor.detach().flatten().tolist()]


def initialise(model, n_layer, seed):
    """Initialises as GPT-2 does. Norms keep PyTorch's weights of 1, and biases are 0."""
    for i, (name, p) in enumerate(model.named_parameters()):
        if p.dim() < 2:
            p.data.fill_(1.0 if ".ln_" in f".{name}" and name.endswith("weight") else 0.0)
            continue
        std = 0.02 / np.sqrt(2.0 * n_layer) if "c_proj" in name else 0.02
        p.data = torch.from_numpy(normal_weights(p.shape, std, seed, i))


def trained():
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "gpt2_text.txt"), "rb") as f:
        text = f.read()
    block = TRAINED["block"]
    samples = (len(text) - 1) // block
    head = (f"lockstep sequences 1\nformat text\nsamples {samples}\nblock {block}\n"
            f"token bytes 1\ntokens {len(text)}\n")
    fingerprint = xxhash.xxh3_128_hexdigest(head.encode() + text)
    digest = xxhash.xxh3_128_intdigest(fingerprint.encode())
    order = EpochOrder(SEED, 0, (digest & MASK, digest >> 64), samples)
    windows = np.stack([np.frombuffer(text[i * block:(i + 1) * block + 1], np.uint8)
                        for i in range(samples)]).astype(np.int64)
    model = Gpt2(**TRAINED)
    initialise(model, TRAINED["n_layer"], SEED)
    groups = [{"params": [p for p in model.parameters() if p.dim() >= 2], "weight_decay": DECAY},
              {"params": [p for p in model.parameters() if p.dim() < 2], "weight_decay": 0}]
    optimizer = torch.optim.AdamW(groups, lr=LR)
    losses = []
    for step in range(STEPS):
        chosen = torch.from_numpy(windows[[order.at(step * BATCH + i) for i in range(BATCH)]])
        loss = loss_of(model(chosen[:, :-1]), chosen[:, 1:])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return {"model": TRAINED, "fingerprint": fingerprint, "seed": SEED, "batch": BATCH, "lr": LR,
            "weight_decay": DECAY, "losses": losses}


def main():
    torch.set_num_threads(1)
    json.dump({"torch": torch.__version__, "small": small(), "trained": trained()}, sys.stdout)
    print()


if __name__ == "__main__":
    main()
