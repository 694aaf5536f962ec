#!/usr/bin/env python3
"""Training loops in Python: the same loop bare, alone under Lockstep, with two workers, and in DDP over
gloo with two ranks, in turn.

    script_loops.py --python PYTHON [--models mlp,cnn,gpt2] [--rounds 5] [--text FILE] [--together]
                    [--steps N] [--slots 4]

PYTHON has torch and our package. Prints, for each model, medians with least and most in steps/s,
and two ratios: alone to bare (the cost of Lockstep if nothing is summed), two workers to DDP.

With --together bare and alone run at the same time, on a processor each, and swap places every
round: other users of the machine disturb both alike. Prints only their ratio.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BIN = pathlib.Path(os.environ.get("LOCKSTEP_BIN", ROOT / "build/release/bin"))
STEPS = {"mlp": 600, "cnn": 120, "gpt2": 40}
BATCH = {"mlp": 128, "cnn": 128, "gpt2": 8}


def output_of(command, **more):
    done = subprocess.run([str(word) for word in command], text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False, **more)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\nended with {done.returncode}:\n"
                 f"{done.stdout[-3000:]}")
    return done.stdout


def rate_in(text):
    return float(re.findall(r"^rate ([0-9.]+)", text, re.M)[-1])


class Model:
    def __init__(self, name, args):
        self.name, self.python = name, args.python
        self.data = args.text if name == "gpt2" else args.images
        self.steps = args.steps or STEPS[name]
        self.words = [name, self.data, self.steps, BATCH[name], args.slots]
        self.job = {"TRAIN__MAX_STEPS": self.steps, "TRAIN__GLOBAL_BATCH": BATCH[name],
                    "TRAIN__SLOTS": args.slots}
        self.env = {**os.environ, "OMP_NUM_THREADS": "1", "LOCKSTEP_PYTHON": args.python,
                    **{f"LOCKSTEP_{key}": str(value) for key, value in self.job.items()}}

    def command(self, mode):
        return [self.python, HERE / "loop_script.py", mode, *self.words]

    def bare(self):
        return rate_in(output_of(self.command("bare"), env=self.env))

    def alone(self):
        return rate_in(output_of(self.command("alone"), env=self.env))

    def alone_to_bare_together(self, swapped):
        """The ratio of both rates when each has one of two processors."""
        processors = sorted(os.sched_getaffinity(0))[:2]
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            rates = pool.map(lambda mode, cpu: rate_in(output_of(
                ["taskset", "-c", cpu, *self.command(mode)], env=self.env)),
                ("alone", "bare"), reversed(processors) if swapped else processors)
        alone, bare = rates
        return alone / bare

    def two_workers(self):
        with tempfile.TemporaryDirectory() as directory:
            run_dir = pathlib.Path(directory) / "run"
            words = json.dumps(["run", *map(str, self.words)])
            output_of([BIN / "lockstep", "run", HERE / "loop_script.py", "--workers", 2, "--run-dir",
                       run_dir, f"script.args={words}"], env=self.env)
            return min(rate_in(log.read_text()) for log in (run_dir / "logs").glob("worker-*.stderr"))

    def ddp(self):
        text = output_of([self.python, "-m", "torch.distributed.run", "--standalone",
                          "--nproc-per-node", 2, HERE / "peer_ddp.py", "--data", self.data, "--model",
                          self.name, "--size", "d4", "--global-batch", BATCH[self.name], "--steps",
                          self.steps * 9 // 10, "--warmup-steps", max(2, self.steps // 10)],
                         env=self.env)
        found = json.loads([line for line in text.splitlines() if line.startswith("{")][-1])
        return found["samples_per_second"] / BATCH[self.name]


def shown(rates):
    return f"{statistics.median(rates):.3f} ({min(rates):.3f} to {max(rates):.3f})"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--python", required=True)
    parser.add_argument("--models", default="mlp,cnn,gpt2")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--images", default="/usr/share/datasets/fashion-mnist")
    parser.add_argument("--text", default=str(ROOT / "README.md"))
    parser.add_argument("--together", action="store_true")
    parser.add_argument("--steps", type=int, help="default: by model")
    parser.add_argument("--slots", type=int, default=4, help="of a step")
    args = parser.parse_args()
    for name in args.models.split(","):
        model = Model(name, args)
        if args.together:
            pairs = [model.alone_to_bare_together(swapped=number % 2 == 1)
                     for number in range(args.rounds)]
            print(f"{name:5} alone to bare, together: {shown(pairs)}", flush=True)
            continue
        rates = {kind: [] for kind in ("bare", "alone", "ddp", "two_workers")}
        for number in range(args.rounds):
            print(f"{name}: round {number + 1} of {args.rounds}", file=sys.stderr, flush=True)
            for kind, seen in rates.items():
                seen.append(getattr(model, kind)())
        ratio = lambda a, b: statistics.median(x / y for x, y in zip(rates[a], rates[b]))
        print(f"{name:5} " + "  ".join(f"{kind} {shown(seen)}" for kind, seen in rates.items()))
        print(f"{name:5} alone to bare {ratio('alone', 'bare'):.3f}, two workers to DDP "
              f"{ratio('two_workers', 'ddp'):.3f}", flush=True)


if __name__ == "__main__":
    main()
