#!/usr/bin/env python3
"""From the command to the first step finished: `lockstep run` against torchrun, two CPU workers.

    startup.py --lockstep build/dev/bin/lockstep --python PYTHON [--data DIR]

Neither side inflates anything: both read a plain copy of the data set. Ours ends when the step is
in history.jsonl, which the coordinator writes after it has the step on disk; the peer's when its
process says so.
"""
import argparse
import gzip
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
DEADLINE_S = 120
TARGET = 3.0


def plain_copy(source, directory):
    for path in pathlib.Path(source).iterdir():
        name = path.name.removesuffix(".gz")
        data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        (directory / name).write_bytes(data)
    return directory


def end(process):
    """Ends all processes of the command's own session."""
    os.killpg(process.pid, signal.SIGTERM)
    process.wait(DEADLINE_S)


def time_to(command, happened, process_options=None):
    begin = time.monotonic()
    process = subprocess.Popen(command, start_new_session=True, stderr=subprocess.DEVNULL,
                               env=dict(os.environ, OMP_NUM_THREADS="1"), **process_options or {})
    while not happened(process):
        if process.poll() is not None or time.monotonic() - begin > DEADLINE_S:
            end(process) if process.poll() is None else None
            sys.exit(f"{' '.join(map(str, command))} finished no step")
    seconds = time.monotonic() - begin
    end(process)
    return seconds


def ours(args, data, scratch, turn):
    job = scratch / "job.yaml"
    job.write_text(f"job: startup\nmodel: {{name: {args.model}}}\n"
                   f"data: {{train: {{path: {data}}}, cache_dir: {scratch}/cache}}\n"
                   "train: {global_batch: 128, epochs: 50}\noptimizer: {name: adamw, lr: 0.001}\n"
                   "cluster: {device: cpu}\n")
    run = scratch / f"run-{turn}"

    def happened(_):
        time.sleep(0.001)  # without it the workers have a processor less
        history = run / "history.jsonl"
        return history.exists() and history.stat().st_size > 0

    return time_to([args.lockstep, "run", job, "--workers", "2", "--run-dir", run], happened,
                   {"stdout": subprocess.DEVNULL})


def peers(args, data, _scratch, _turn):
    command = [args.python, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2",
               HERE / "peer_ddp.py", "--data", data, "--model", args.model, "--steps", "1000000",
               "--tell-first-step"]
    return time_to(command, lambda p: "first step" in p.stdout.readline(),
                   {"stdout": subprocess.PIPE, "text": True})


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lockstep", required=True, help="the program lockstep")
    parser.add_argument("--python", default=sys.executable, help="with torch and numpy")
    parser.add_argument("--data", default="/usr/share/datasets/fashion-mnist")
    parser.add_argument("--model", default="cnn", choices=["mlp", "cnn"])
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    seconds = {"ours": [], "torchrun": []}
    with tempfile.TemporaryDirectory() as name:
        scratch = pathlib.Path(name)
        (scratch / "data").mkdir()
        data = plain_copy(args.data, scratch / "data")
        for turn in range(args.rounds):
            seconds["ours"].append(ours(args, data, scratch, turn))
            seconds["torchrun"].append(peers(args, data, scratch, turn))
    a, b = (statistics.median(seconds[side]) for side in ("ours", "torchrun"))
    for side, values in seconds.items():
        print(f"{side:9} {statistics.median(values):.2f} s ({min(values):.2f} to {max(values):.2f})")
    print(f"ratio {b / a:.1f}, target {TARGET}: {'met' if b / a >= TARGET else 'MISSED'}")


if __name__ == "__main__":
    main()
