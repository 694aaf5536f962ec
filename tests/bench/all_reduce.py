#!/usr/bin/env python3
"""All-reduce against gloo: two processes on this host, both programs in turn in the same run.

    all_reduce.py BENCH_ALL_REDUCE [--python PYTHON] [--sweeps 5] [--rounds 20] [--transport tcp]
                  [--sizes BYTES ...]

PYTHON must be able to import torch; it runs torch.distributed's gloo with one thread a process.
Every sweep runs ours and gloo one after the other at each size, so that the machine's other work
meets both. Prints medians over all rounds, the quartiles, and the ratio of the medians, of the best
rounds and of the processor time of rank 0 (which other work disturbs least). For what memory allows
it also prints the time in which both ranks copy the buffer once: two of the three passes that any
all-reduce must make (read own, read the peer's, write the sum).
"""
import argparse
import json
import os
import socket
import statistics
import subprocess
import sys

GLOO = r"""
import json, os, sys, time
import torch, torch.distributed as dist
torch.set_num_threads(1)
dist.init_process_group("gloo")
sizes, rounds = json.loads(sys.argv[1]), int(sys.argv[2])
for size in sizes:
    tensor = torch.ones(size // 4)
    times, cpu = [], []
    for i in range(rounds + 3):
        dist.barrier()
        begin, cpu_begin = time.perf_counter(), time.process_time()
        dist.all_reduce(tensor)
        if i >= 3:
            times.append((time.perf_counter() - begin) * 1e6)
            cpu.append((time.process_time() - cpu_begin) * 1e6)
        tensor.fill_(1.0)
    if dist.get_rank() == 0:
        print(json.dumps({"bytes": size, "us": times, "cpu_us": cpu}), flush=True)
dist.destroy_process_group()
"""


def run_gloo(python, size, rounds):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    ranks = []
    for rank in range(2):
        env = dict(os.environ, MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), RANK=str(rank),
                   WORLD_SIZE="2", OMP_NUM_THREADS="1", GLOO_SOCKET_IFNAME="lo")
        ranks.append(subprocess.Popen([python, "-c", GLOO, json.dumps([size]), str(rounds)],
                                      env=env, stdout=subprocess.PIPE, text=True))
    outputs = [process.communicate()[0] for process in ranks]
    if any(process.returncode for process in ranks):
        sys.exit("all_reduce.py: gloo failed; can that python import torch?")
    return json.loads(outputs[0].splitlines()[-1])


def run_ours(program, transport, size, rounds):
    done = subprocess.run([program, "--transport", transport, "--rounds", str(rounds), str(size)],
                          check=True, text=True, stdout=subprocess.PIPE)
    return json.loads(done.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--sweeps", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--transport", choices=["shm", "tcp"], default="shm",
                        help="of our ranks; gloo always takes TCP")
    parser.add_argument("--sizes", type=int, nargs="+",
                        default=[1 << 10, 1 << 20, 4 << 20, 25 << 20, 100_000_000])
    args = parser.parse_args()
    times = {size: {"ours": [], "gloo": [], "copy": [], "our_cpu": [], "gloo_cpu": []} for size in args.sizes}
    for _ in range(args.sweeps):
        for size in args.sizes:
            ours = run_ours(args.program, args.transport, size, args.rounds)
            times[size]["ours"] += ours["us"]
            times[size]["copy"] += ours["copy_us"]
            times[size]["our_cpu"] += ours["cpu_us"]
            gloo = run_gloo(args.python, size, args.rounds)
            times[size]["gloo"] += gloo["us"]
            times[size]["gloo_cpu"] += gloo["cpu_us"]
    print(f"{'bytes':>11} {'ours us':>10} {'25-75 %':>19} {'gloo us':>10} {'25-75 %':>19} "
          f"{'ratio':>6} {'of best':>7} {'of cpu':>7} {'copy us':>9} {'ours/copy':>9}")
    for size, of in times.items():
        low, middle, high = statistics.quantiles(of["ours"], n=4)
        gloo_low, gloo, gloo_high = statistics.quantiles(of["gloo"], n=4)
        copy = statistics.median(of["copy"])
        cpu = statistics.median(of["gloo_cpu"]) / statistics.median(of["our_cpu"])
        best = min(of["gloo"]) / min(of["ours"])
        print(f"{size:>11} {middle:>10.1f} {low:>9.1f}-{high:<9.1f} {gloo:>10.1f} "
              f"{gloo_low:>9.1f}-{gloo_high:<9.1f} {gloo / middle:>5.1f}x {best:>6.1f}x {cpu:>6.1f}x "
              f"{copy:>9.1f} {middle / copy:>9.2f}")


if __name__ == "__main__":
    main()
