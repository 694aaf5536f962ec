"""The peer of train_vs_torchrun.py: the same training in PyTorch DDP, as fast as it gets on CPUs.

Started by torchrun, one process a rank. Data are tensors in memory, shuffled beforehand; gloo,
gradients as bucket views, static graph, fused AdamW. Rank 0 prints one JSON object.
"""
import argparse
import json
import time

import numpy as np
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from peer_models import loss_of, make_model, training_data


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", required=True)
    parser.add_argument("--model", default="mlp")
    parser.add_argument("--size", default="d12", help="gpt2: d4, d6, d8 or d12")
    parser.add_argument("--block", type=int, default=128, help="gpt2: tokens of a sequence")
    parser.add_argument("--global-batch", type=int, default=128)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--warmup-steps", type=int, default=50)
    parser.add_argument("--tell-first-step", action="store_true", help="rank 0 prints a line")
    args = parser.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()

    x, y = training_data(args.model, args.data, args.block)
    mine = torch.from_numpy(np.random.default_rng(1).permutation(len(x))[rank::world].copy())
    x, y = x[mine], y[mine]

    torch.manual_seed(1)
    model = DistributedDataParallel(make_model(args.model, args.size, args.block),
                                    gradient_as_bucket_view=True, static_graph=True)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    batch = args.global_batch // world
    batches = len(y) // batch

    def step(i):
        begin = i % batches * batch
        loss = loss_of(args.model, model(x[begin : begin + batch]), y[begin : begin + batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    for i in range(args.warmup_steps):
        step(i)
        if args.tell_first_step and i == 0 and rank == 0:
            print("first step", flush=True)
    dist.barrier()
    start = time.perf_counter()
    for i in range(args.steps):
        loss = step(i)
    seconds = time.perf_counter() - start
    if rank == 0:
        rate = args.steps * batch * world / seconds
        print(json.dumps({"samples_per_second": round(rate, 1), "loss": loss.item()}), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
