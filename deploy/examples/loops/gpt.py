#!/usr/bin/env python3
r"""nanoGPT's loop: a small GPT in bf16, many micro-batches a step, a cosine after a warm-up, clipped
gradients, and a held-out loss every 50 steps.

    lockstep run gpt.py --workers 2 -- --data FILE
    python gpt.py --data FILE

Both give the same weights. FILE is a text, whose bytes are the tokens, or a directory with train.bin
and val.bin of 16-bit tokens, as nanoGPT's prepare.py writes them. Without one it makes a text. A GPT-2
of 124 M parameters at its usual batch of 480 sequences:

    lockstep run gpt.py --workers 8 train.global_batch=480 train.slots=40 train.max_steps=600000 \
        eval.every_steps=2000 -- --data openwebtext --n-layer 12 --n-head 12 --n-embd 768 \
        --block-size 1024 --vocab-size 50304 --dropout 0 --lr 6e-4 --warmup 2000 --decay-steps 600000

11 lines are not plain PyTorch: the block, and those that name lockstep or `run`.
"""
# /// lockstep
# job: gpt
# train: {global_batch: 32, slots: 4, max_steps: 150}
# eval: {every_steps: 50}
# ///
import argparse
import math
import pathlib

import lockstep
import numpy as np
import torch
from torch import nn
from torch.nn import functional as F
from torch.optim.lr_scheduler import LambdaLR


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--data", type=pathlib.Path, help="a text, or a directory with train.bin and val.bin")
    parser.add_argument("--vocab-size", type=int, default=256)
    parser.add_argument("--block-size", type=int, default=64, help="tokens of a sequence")
    parser.add_argument("--n-layer", type=int, default=2)
    parser.add_argument("--n-head", type=int, default=4)
    parser.add_argument("--n-embd", type=int, default=64)
    parser.add_argument("--dropout", type=float, default=0.1)
    parser.add_argument("--precision", choices=("fp32", "bf16"), default="bf16")
    parser.add_argument("--lr", type=float, default=3e-3, help="after the warm-up")
    parser.add_argument("--warmup", type=int, default=15, help="steps")
    parser.add_argument("--decay-steps", type=int, default=150, help="the step at which the cosine ends")
    parser.add_argument("--weight-decay", type=float, default=0.1)
    parser.add_argument("--eval-iters", type=int, default=200, help="sequences of the held-out loss")
    parser.add_argument("--data-processes", type=int, default=0, help="they read ahead")
    return parser.parse_args()


def tokens_of(path):
    """Tokens that train, and those that are held out."""
    if path is not None and path.is_dir():
        return [np.memmap(path / f"{part}.bin", np.uint16, "r") for part in ("train", "val")]
    text = path.read_bytes() if path else b"".join(
        b"%d and %d make %d.\n" % (a, b, a + b) for a in range(30) for b in range(30))
    text = np.frombuffer(text, np.uint8)
    return text[:len(text) * 9 // 10], text[len(text) * 9 // 10:]


class Sequences(torch.utils.data.Dataset):
    """Each place in the tokens once an epoch. `moves`: a sequence begins up to its own length after its
    place, elsewhere in every epoch: Lockstep seeds the draw."""

    def __init__(self, tokens, length, moves):
        self.tokens, self.length, self.moves = tokens, length, moves

    def __len__(self):
        return (len(self.tokens) - 1) // self.length - self.moves

    def __getitem__(self, index):
        begin = index * self.length + (int(torch.randint(self.length, ())) if self.moves else 0)
        sequence = torch.from_numpy(self.tokens[begin:begin + self.length + 1].astype(np.int64))
        return sequence[:-1], sequence[1:]


class CausalSelfAttention(nn.Module):
    def __init__(self, args):
        super().__init__()
        self.heads, self.dropout = args.n_head, args.dropout
        self.qkv = nn.Linear(args.n_embd, 3 * args.n_embd, bias=False)
        self.proj = nn.Linear(args.n_embd, args.n_embd, bias=False)

    def forward(self, x):
        q, k, v = self.qkv(x).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True,
                                           dropout_p=self.dropout if self.training else 0.0)
        return self.proj(y.transpose(1, 2).flatten(2))


class Block(nn.Module):
    def __init__(self, args):
        super().__init__()
        width = args.n_embd
        self.attention = nn.Sequential(nn.LayerNorm(width), CausalSelfAttention(args),
                                       nn.Dropout(args.dropout))
        self.mlp = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(),
                                 nn.Linear(4 * width, width), nn.Dropout(args.dropout))

    def forward(self, x):
        x = x + self.attention(x)
        return x + self.mlp(x)


class GPT(nn.Module):
    def __init__(self, args):
        super().__init__()
        self.wte = nn.Embedding(args.vocab_size, args.n_embd)
        self.wpe = nn.Embedding(args.block_size, args.n_embd)
        self.blocks = nn.Sequential(*(Block(args) for _ in range(args.n_layer)), nn.LayerNorm(args.n_embd))
        self.lm_head = nn.Linear(args.n_embd, args.vocab_size, bias=False)
        self.lm_head.weight = self.wte.weight  # tied
        for embedding in (self.wte, self.wpe):
            nn.init.normal_(embedding.weight, std=0.02)

    def forward(self, x):
        places = torch.arange(x.shape[1], device=x.device)
        return self.lm_head(self.blocks(self.wte(x) + self.wpe(places)))


def configure_optimizer(model, args):
    """Matrices decay; biases and the gains of norms do not."""
    parameters = list(model.parameters())
    return torch.optim.AdamW([
        {"params": [p for p in parameters if p.dim() > 1], "weight_decay": args.weight_decay},
        {"params": [p for p in parameters if p.dim() < 2], "weight_decay": 0.0},
    ], lr=args.lr, betas=(0.9, 0.95))


def share_of_lr(step, args):
    """Rises for `warmup` steps, falls along a cosine to a tenth, and stays there."""
    if step < args.warmup:
        return (step + 1) / (args.warmup + 1)
    way = min(1.0, (step - args.warmup) / max(1, args.decay_steps - args.warmup))
    return 0.55 + 0.45 * math.cos(math.pi * way)


def main():
    args = arguments()
    train, val = tokens_of(args.data)
    val = Sequences(val, args.block_size, moves=False)
    val = torch.utils.data.Subset(val, range(min(args.eval_iters, len(val))))
    run = lockstep.start()
    model = GPT(args)
    optimizer = configure_optimizer(model, args)
    scheduler = LambdaLR(optimizer, lambda step: share_of_lr(step, args))

    def loss_of(batch):
        x, y = batch
        with torch.autocast("cpu", torch.bfloat16, enabled=args.precision == "bf16"):
            logits = model(x)
        return F.cross_entropy(logits.float().flatten(0, 1), y.flatten())

    run.keep(model=model, optimizer=optimizer, scheduler=scheduler, clip_norm=1.0)
    run.evaluate(loss_of, val)
    for batch in run.batches(Sequences(train, args.block_size, moves=True), workers=args.data_processes):
        run.backward(loss_of(batch))
    model.eval()
    with torch.no_grad():
        held_out = sum(loss_of(batch).item() for batch in torch.utils.data.DataLoader(val)) / len(val)
    print(f"held-out loss {held_out:.4f}")


if __name__ == "__main__":
    main()
