"""The peer of train_vs_torchrun.py: the same training in PyTorch DDP, as fast as it gets on CPUs.

Started by torchrun, one process a rank. Data are tensors in memory, shuffled beforehand; gloo,
gradients as bucket views, static graph, fused AdamW. Rank 0 prints one JSON object.
"""
import argparse
import gzip
import json
import os
import time

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def read_idx(path):
    opened = gzip.open(path + ".gz", "rb") if os.path.exists(path + ".gz") else open(path, "rb")
    with opened as f:
        raw = f.read()
    dims = [int.from_bytes(raw[4 + 4 * i : 8 + 4 * i], "big") for i in range(raw[3])]
    return np.frombuffer(raw, np.uint8, offset=4 + 4 * len(dims)).reshape(dims)


def make_model(name):
    if name == "mlp":
        return nn.Sequential(nn.Flatten(), nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 128),
                             nn.ReLU(), nn.Linear(128, 10))
    return nn.Sequential(nn.Conv2d(1, 16, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 3),
                         nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(800, 64), nn.ReLU(),
                         nn.Linear(64, 10))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", required=True)
    parser.add_argument("--model", default="mlp")
    parser.add_argument("--global-batch", type=int, default=128)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--warmup-steps", type=int, default=50)
    args = parser.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()

    pixels = read_idx(os.path.join(args.data, "train-images-idx3-ubyte"))
    labels = read_idx(os.path.join(args.data, "train-labels-idx1-ubyte"))
    mine = np.random.default_rng(1).permutation(len(labels))[rank::world]
    x = torch.from_numpy(pixels[mine][:, None].astype(np.float32) / 255)
    x = (x - 0.2860) / 0.3530
    y = torch.from_numpy(labels[mine].astype(np.int64))

    torch.manual_seed(1)
    model = DistributedDataParallel(make_model(args.model), gradient_as_bucket_view=True,
                                    static_graph=True)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    batch = args.global_batch // world
    batches = len(y) // batch

    def step(i):
        begin = i % batches * batch
        loss = nn.functional.cross_entropy(model(x[begin : begin + batch]),
                                           y[begin : begin + batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    for i in range(args.warmup_steps):
        step(i)
    dist.barrier()
    start = time.perf_counter()
    for i in range(args.steps):
        loss = step(i)
    seconds = time.perf_counter() - start
    if rank == 0:
        rate = args.steps * batch * world / seconds
        print(json.dumps({"images_per_second": round(rate, 1), "loss": loss.item()}), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
