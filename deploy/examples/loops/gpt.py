#!/usr/bin/env python3
"""A small language model of bytes, trained on a text file. The last tenth of the file is held out;
its loss is printed behind the loop.

    lockstep run gpt.py --workers 2 -- FILE
    python gpt.py FILE

Both give the same weights. 10 lines are not plain PyTorch: the block, and those that name lockstep
or `run`.
"""
# /// lockstep
# job: gpt
# train: {global_batch: 32, slots: 4, max_steps: 150}
# checkpoint: {every_steps: 50}
# ///
import argparse
import math
import pathlib

import lockstep
import torch
from torch import nn
from torch.nn import functional as F
from torch.optim.lr_scheduler import LambdaLR


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("text", type=pathlib.Path, help="a file; its bytes are the tokens")
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--width", type=int, default=64, help="a multiple of the heads")
    parser.add_argument("--context", type=int, default=64, help="bytes of a sequence")
    parser.add_argument("--dropout", type=float, default=0.1)
    parser.add_argument("--precision", choices=("fp32", "bf16"), default="fp32")
    parser.add_argument("--lr", type=float, default=3e-3, help="after the warm-up")
    parser.add_argument("--warmup", type=int, default=15, help="steps")
    parser.add_argument("--steps", type=int, default=150,
                        help="where the cosine ends; training ends at train.max_steps")
    parser.add_argument("--decay", type=float, default=0.1, help="of weights that multiply")
    parser.add_argument("--data-processes", type=int, default=0, help="they read ahead")
    return parser.parse_args()


class Passages(torch.utils.data.Dataset):
    """Stretches of a text. Each begins up to its own length behind its place, another one in every
    epoch: the draw is seeded by Lockstep."""

    def __init__(self, text, length):
        self.text, self.length = text, length

    def __len__(self):
        return (len(self.text) - 1) // self.length - 1

    def __getitem__(self, index):
        begin = index * self.length + int(torch.randint(self.length, ()))
        passage = self.text[begin:begin + self.length + 1].long()
        return passage[:-1], passage[1:]


class Attention(nn.Module):
    def __init__(self, width, heads, dropout):
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.read = nn.Linear(width, 3 * width, bias=False)
        self.write = nn.Linear(width, width, bias=False)

    def forward(self, x):
        query, key, value = self.read(x).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(query, key, value, is_causal=True,
                                               dropout_p=self.dropout if self.training else 0.0)
        return self.write(mixed.transpose(1, 2).flatten(2))


class Layer(nn.Module):
    def __init__(self, width, heads, dropout):
        super().__init__()
        self.attend = nn.Sequential(nn.LayerNorm(width), Attention(width, heads, dropout),
                                    nn.Dropout(dropout))
        self.think = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(),
                                   nn.Linear(4 * width, width), nn.Dropout(dropout))

    def forward(self, x):
        x = x + self.attend(x)
        return x + self.think(x)


class Gpt(nn.Module):
    def __init__(self, args):
        super().__init__()
        self.tokens = nn.Embedding(256, args.width)
        self.places = nn.Embedding(args.context, args.width)
        self.layers = nn.Sequential(*(Layer(args.width, args.heads, args.dropout)
                                      for _ in range(args.layers)), nn.LayerNorm(args.width))
        for embedding in (self.tokens, self.places):
            nn.init.normal_(embedding.weight, std=0.1)

    def forward(self, tokens):
        places = torch.arange(tokens.shape[1], device=tokens.device)
        hidden = self.layers(self.tokens(tokens) + self.places(places))
        return F.linear(hidden, self.tokens.weight)  # one matrix reads and writes tokens


def loss_of(model, inputs, targets, precision):
    with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16"):
        logits = model(inputs)
    return F.cross_entropy(logits.float().flatten(0, 1), targets.flatten())


def optimizer_of(model, args):
    """Matrices decay; biases and the gains of norms do not."""
    parameters = list(model.parameters())
    return torch.optim.AdamW([
        {"params": [p for p in parameters if p.dim() > 1], "weight_decay": args.decay},
        {"params": [p for p in parameters if p.dim() < 2], "weight_decay": 0.0},
    ], lr=args.lr, betas=(0.9, 0.95))


def share_of_lr(step, args):
    """Rises for `warmup` steps, falls along a cosine to a tenth, and stays there."""
    if step < args.warmup:
        return (step + 1) / args.warmup
    way = min(1.0, (step - args.warmup) / max(1, args.steps - args.warmup))
    return 0.55 + 0.45 * math.cos(math.pi * way)


@torch.no_grad()
def held_out_loss(model, text, context):
    model.eval()
    whole = text[:(len(text) - 1) // context * context + 1].long()
    inputs, targets = whole[:-1].view(-1, context), whole[1:].view(-1, context)
    pairs = zip(inputs.split(64), targets.split(64))
    return sum(len(i) * loss_of(model, i, t, "fp32").item() for i, t in pairs) / len(inputs)


def main():
    args = arguments()
    text = torch.frombuffer(bytearray(args.text.read_bytes()), dtype=torch.uint8)
    train, held_out = text[:len(text) * 9 // 10], text[len(text) * 9 // 10:]
    run = lockstep.start()
    model = Gpt(args)
    optimizer = optimizer_of(model, args)
    scheduler = LambdaLR(optimizer, lambda step: share_of_lr(step, args))
    run.keep(model=model, optimizer=optimizer, scheduler=scheduler, clip_norm=1.0)
    for inputs, targets in run.batches(Passages(train, args.context), workers=args.data_processes):
        loss = loss_of(model, inputs, targets, args.precision)
        run.backward(loss)
    print(f"held-out loss {held_out_loss(model, held_out, args.context):.3f} nats a byte")


if __name__ == "__main__":
    main()
