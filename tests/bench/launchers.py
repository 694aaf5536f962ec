#!/usr/bin/env python3
"""From the command to the first step finished, under each launcher, two CPU workers.

    launchers.py --lockstep build/release/bin/lockstep --python PYTHON [--rounds 5]

Ours ends when the step is in history.jsonl, on disk; torchrun's when its process says so. Next to
them is the launcher's own time: the same command with /bin/true in the place of Lockstep. Slurm is
a real one of four nodes on this machine, the pods are processes in namespaces (tests/cluster):
neither waits for a scheduler's queue or pulls an image. All take turns, so that the machine's other
work meets all of them. Needs root, and the packages that tests/cluster needs. Leaves out launchers
whose packages are missing, and names them.
"""
import argparse
import contextlib
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/cluster/world"), str(ROOT / "tests/harness")]

import startup  # noqa: E402

MPIRUN = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-np", "2"]
SRUN = ["srun", "-N", "2", "--ntasks-per-node=1"]
POD_USER = 65532
DEADLINE_S = 180


def wait_for_step(run, what):
    begin = time.monotonic()
    history = run / "history.jsonl"
    while not (history.exists() and history.stat().st_size > 0):
        if time.monotonic() - begin > DEADLINE_S:
            sys.exit(f"{what}: no step within {DEADLINE_S} s")
        time.sleep(0.002)


class Bench:
    def __init__(self, args, scratch):
        self.args, self.scratch = args, scratch
        self.cluster = None
        (scratch / "data").mkdir()
        self.data = startup.plain_copy(args.data, scratch / "data")
        self.job = self.write_job("job.yaml", self.data)
        self.turn = 0

    def write_job(self, name, data):
        job = {"job": "startup", "model": {"name": self.args.model},
               "data": {"train": {"path": str(data)}, "cache_dir": str(self.scratch / "cache")},
               "train": {"global_batch": 128, "epochs": 50},
               "optimizer": {"name": "adamw", "lr": 0.001}, "cluster": {"device": "cpu"}}
        path = self.scratch / name
        path.write_text(json.dumps(job))
        return path

    def new_run(self):
        self.turn += 1
        return self.scratch / f"run-{self.turn}"

    def agent(self, run):
        return [self.args.lockstep, "agent", self.job, "--run-dir", run]

    def launched(self, command, run, env=None):
        """Seconds to the first step of a command that stops at SIGTERM."""
        out = open(self.scratch / "out", "ab")
        begin = time.monotonic()
        process = subprocess.Popen(command, stdout=out, stderr=out, stdin=subprocess.DEVNULL,
                                   env=env or dict(os.environ, OMP_NUM_THREADS="1"))
        wait_for_step(run, command[0])
        seconds = time.monotonic() - begin
        process.terminate()
        process.wait(DEADLINE_S)
        return seconds

    def alone(self, command, env=None):
        begin = time.monotonic()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                       env=env)
        return time.monotonic() - begin

    # ---- the ways to launch ----

    def lockstep_run(self):
        run = self.new_run()
        return self.launched([self.args.lockstep, "run", self.job, "--workers", "2", "--run-dir",
                              run], run)

    def torchrun(self):
        return startup.peers(self.args, self.data, None, None)

    def mpirun(self):
        run = self.new_run()
        return self.launched([*MPIRUN, *self.agent(run)], run)

    def mpirun_alone(self):
        return self.alone([*MPIRUN, "true"])

    def srun(self):
        run = self.new_run()
        seconds = self.launched([*SRUN, *self.agent(run)], run, self.cluster.env)
        self.cluster.make_idle()
        return seconds

    def srun_alone(self):
        return self.alone([*SRUN, "true"], self.cluster.env)

    def sbatch(self):
        run = self.new_run()
        begin = time.monotonic()
        subprocess.run([self.args.lockstep, "sbatch", self.job, "--run-dir", run, "--nodes", "2",
                        "--time", "1:00:00", "--submit"], check=True, env=self.cluster.env,
                       cwd=self.scratch, stdout=subprocess.DEVNULL)
        wait_for_step(run, "sbatch")
        seconds = time.monotonic() - begin
        self.cluster.make_idle()
        return seconds

    def jobset(self):
        import yaml
        from kubernetes import Kubernetes

        runs = self.scratch / f"claims-{self.new_run().name}"
        runs.mkdir()
        os.chown(runs, POD_USER, POD_USER)
        rendered = subprocess.run(
            [self.args.lockstep, "k8s", "render", self.write_job("pods.yaml", "/data"), "--kind",
             "jobset", "--image", "registry.example/lockstep", "--run-claim", "runs",
             "--data-claim", "data", "--workers", "2", "data.cache_dir=/tmp/cache"],
            check=True, capture_output=True, text=True)
        manifests = list(yaml.safe_load_all(rendered.stdout))
        cluster = Kubernetes(runs / "cluster", 6, {"runs": runs, "data": self.data})
        try:
            begin = time.monotonic()
            cluster.apply(manifests)
            wait_for_step(runs / "startup", "pods")
            return time.monotonic() - begin
        finally:
            cluster.close()


def ways(bench):
    found = [("lockstep run", bench.lockstep_run), ("torchrun (peer)", bench.torchrun)]
    if shutil.which("mpirun"):
        found += [("mpirun", bench.mpirun), ("  mpirun true", bench.mpirun_alone)]
    if bench.cluster:
        found += [("srun", bench.srun), ("  srun true", bench.srun_alone),
                  ("lockstep sbatch", bench.sbatch)]
    if bench.args.pods:
        found += [("pods of a JobSet", bench.jobset)]
    return found


@contextlib.contextmanager
def slurm(scratch):
    from slurm_cluster import SlurmCluster, why_not

    if lack := why_not():
        print(f"without Slurm: {lack}")
        yield None
        return
    cluster = SlurmCluster(scratch / "slurm")
    try:
        yield cluster
    finally:
        cluster.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lockstep", required=True, type=lambda p: pathlib.Path(p).resolve())
    parser.add_argument("--python", default=sys.executable, help="with torch and numpy")
    parser.add_argument("--data", default="/usr/share/datasets/fashion-mnist")
    parser.add_argument("--model", default="cnn", choices=["mlp", "cnn"])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--pods", action=argparse.BooleanOptionalAction, default=True)
    args = parser.parse_args()
    os.environ["LOCKSTEP_BIN"] = str(args.lockstep.parent)
    with tempfile.TemporaryDirectory(prefix="lockstep-bench-") as name:
        scratch = pathlib.Path(name)
        scratch.chmod(0o755)  # munged and the pods' user want it
        bench = Bench(args, scratch)
        with slurm(scratch) as bench.cluster:
            seconds = {}
            for turn in range(args.rounds):
                for what, measure in ways(bench):
                    seconds.setdefault(what, []).append(measure())
                print(f"round {turn + 1} of {args.rounds}", file=sys.stderr, flush=True)
    for what, values in seconds.items():
        print(f"{what:18} {statistics.median(values):6.2f} s "
              f"({min(values):.2f} to {max(values):.2f})")


if __name__ == "__main__":
    main()
