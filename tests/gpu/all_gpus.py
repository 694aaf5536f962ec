"""Our side of measures.py on all GPUs: a whole `lockstep run`, a worker for each GPU, with its
coordinator. Takes the options of peer.py. Prints one JSON object."""
import argparse
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--all-gpus", type=int, required=True, help="workers")
    parser.add_argument("--programs", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--data", required=True)
    parser.add_argument("--model", default="gpt2", choices=["gpt2"])
    parser.add_argument("--size", default="d12")
    parser.add_argument("--block", type=int, default=1024)
    parser.add_argument("--precision", default="bf16")
    parser.add_argument("--global-batch", type=int, required=True)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--warmup-steps", type=int, default=10, help="steps more; the summary leaves out the first 10")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--numerics", default="exact")
    return parser.parse_args()


def job_of(args):
    return {"job": "all-gpus", "seed": 1,
            "model": {"name": args.model, "size": args.size, "block": args.block},
            "data": {"train": {"path": args.data}},
            "train": {"global_batch": args.global_batch, "slots": args.all_gpus,
                      "precision": args.precision, "max_steps": args.steps + args.warmup_steps},
            "optimizer": {"name": "adamw", "lr": 0.001, "weight_decay": 0.01},
            "comm": {"backend": "nccl" if args.device == "cuda" else "host",
                     "numerics": args.numerics},
            "cluster": {"device": args.device}}


def main():
    args = parse()
    with tempfile.TemporaryDirectory(dir=args.out) as scratch:
        job, run = pathlib.Path(scratch) / "job.yaml", pathlib.Path(scratch) / "run"
        job.write_text(json.dumps(job_of(args)))  # JSON is YAML
        ended = subprocess.run([args.programs / "lockstep", "run", job, "--workers",
                                str(args.all_gpus), "--run-dir", run], stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True, errors="replace")
        logs = args.out / f"all-gpus-{args.numerics}-logs"
        shutil.rmtree(logs, ignore_errors=True)
        if (run / "logs").exists():
            shutil.copytree(run / "logs", logs)
        if ended.returncode != 0:
            sys.exit(ended.stdout[-4000:] + f"\nlockstep run ended with {ended.returncode}")
        summary = json.loads((run / "summary.json").read_text())
    # This rate covers the time from step to step, without starts, evaluations and checkpoints.
    print(json.dumps({"samples_per_second": summary["samples_per_second"]}))


if __name__ == "__main__":
    main()
