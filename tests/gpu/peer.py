"""PyTorch's side of measures.py, as a careful user writes it: autocast, fused AdamW, channels-last,
SDPA, cuDNN autotuning, batches that lie on the device already. Prints one JSON object. Needs torch
alone."""
import argparse
import json
import os
import pathlib
import sys
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS / "bench"), str(TESTS / "golden")]
from fused_gpt2 import fused_gpt2  # noqa: E402
from image_models import resnet  # noqa: E402

TYPES = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}
VOCAB, CLASSES, IMAGE, BATCHES = 50257, 256, 224, 4


def wait(device):
    if device == "cuda":
        torch.cuda.synchronize()


def matmul(device):
    n, times = (8192, 20) if device == "cuda" else (512, 5)
    a, b = (torch.randn(n, n, device=device).to(torch.bfloat16) for _ in range(2))
    for _ in range(3):
        a @ b
    wait(device)
    begin = time.perf_counter()
    for _ in range(times):
        a @ b
    wait(device)
    return 2 * n**3 * times / (time.perf_counter() - begin) / 1e12


def make(args):
    """The model, and batches of inputs and labels on the device."""
    n = args.global_batch
    if args.model == "gpt2":
        model = fused_gpt2(args.size, args.block, VOCAB).to(args.device)
        batches = [torch.randint(VOCAB, (n, args.block + 1), device=args.device)
                   for _ in range(BATCHES)]
        return model, [(b[:, :-1].contiguous(), b[:, 1:].contiguous()) for b in batches]
    model = resnet([3, 4, 6, 3], 4, imagenet_stem=True)
    model[0] = torch.nn.Conv2d(3, 64, 7, 2, 3, bias=False)
    model[-1] = torch.nn.Linear(2048, CLASSES)
    model = model.to(args.device, memory_format=torch.channels_last)
    return model, [(torch.randn(n, 3, IMAGE, IMAGE, device=args.device)
                    .to(memory_format=torch.channels_last),
                    torch.randint(CLASSES, (n,), device=args.device)) for _ in range(BATCHES)]


def begin_world(args):
    """torchrun has set the variables that say which rank this is."""
    if args.device == "cuda":
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl" if args.device == "cuda" else "gloo")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--matmul", action="store_true")
    parser.add_argument("--model", choices=["gpt2", "resnet50"])
    parser.add_argument("--size", default="d12")
    parser.add_argument("--block", type=int, default=1024)
    parser.add_argument("--precision", default="bf16", choices=list(TYPES))
    parser.add_argument("--global-batch", type=int, default=32)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--warmup-steps", type=int, default=10)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--data", help="not read: the batches lie on the device")
    parser.add_argument("--all-gpus", type=int, help="under torchrun: DDP over so many ranks")
    args = parser.parse_args()
    torch.backends.cudnn.benchmark = True
    world = args.all_gpus or 1
    if world > 1:
        begin_world(args)
    if args.matmul:
        print(json.dumps({"tflops": matmul(args.device)}))
        return
    if args.device == "cpu":
        torch.set_num_threads(1)  # as bench_train
    args.global_batch //= world  # of this rank
    model, batches = make(args)
    step_model = torch.compile(model) if args.compile else model
    if world > 1:
        step_model = DistributedDataParallel(model, gradient_as_bucket_view=True, static_graph=True)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.01, fused=True)
    scaler = torch.amp.GradScaler(args.device, enabled=args.precision == "fp16")

    def step(i):
        x, y = batches[i % BATCHES]
        with torch.autocast(args.device, TYPES[args.precision], enabled=args.precision != "fp32"):
            logits = step_model(x)
            loss = torch.nn.functional.cross_entropy(logits.flatten(0, -2), y.flatten())
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        return loss

    for i in range(args.warmup_steps):
        step(i)
    wait(args.device)
    begin = time.perf_counter()
    for i in range(args.steps):
        loss = step(i)
    wait(args.device)
    seconds = time.perf_counter() - begin
    if world == 1 or dist.get_rank() == 0:
        print(json.dumps({"samples_per_second": args.steps * args.global_batch * world / seconds,
                          "loss": loss.item()}))
    if world > 1:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
