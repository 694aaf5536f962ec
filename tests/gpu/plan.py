"""Prints the suite's plan for a machine with so many GPUs (--plan): each check and each figure, its
prediction, and the commands that run them all in time. Starts nothing."""
import pathlib

import measures
import predictions

# Options and minutes of each run. One GPU takes 12 minutes in all, and no run more than 10.
RUNS = {"one GPU": (("--only correct", 6), ("--only fast", 6)),
        "several GPUs": (("--only correct", 8), ("--only fast", 8))}

# Seconds on H100s with 16 cores, several checks at a time. They are guesses, not measurements. A
# run of a small model takes 15 s, most of it to load LibTorch's and CUDA's libraries.
CORES = 16
RUN_S = 15
TO_SAY_S = 5  # that a check is not for this machine
CHECKS_S = {
    "test_gpu": 120, "test_gpu_abort": 30,
    "nccl: a bucket of 64 MiB and a cut has the host's bits": 60,
    "processes: any number of workers gives the same weights": 3 * RUN_S,
    "processes: nccl gives the weights of the host": 2 * RUN_S,
    "processes: slots as graphs give the weights of eager slots": 4 * RUN_S,
    "processes: half precision too": 4 * RUN_S,
    "processes: a killed worker changes nothing": 2 * RUN_S + 10,
    "processes: a resume with other workers changes nothing": 3 * RUN_S,
    "processes: the losses are those of the cpu to rounding": 2 * RUN_S,
    "foreign_models: a torchscript file trains on tokens": 4 * RUN_S,
    "foreign_models: a torchscript file trains on images": 3 * RUN_S,
    "foreign_models: a plug in trains": 4 * RUN_S,
    "stuck_kernel: a worker in a kernel without end is put out": 2 * RUN_S + 30,
    "nccl_worlds: every size of the world gives the weights of the host": 4 * RUN_S,  # of 4 GPUs
    "nccl_worlds: a kill while the world is made": 2 * RUN_S + 20,
    "nccl_worlds: a kill in the first step": 2 * RUN_S + 20,
    "nccl_worlds: a kill in steady state": 2 * RUN_S + 20,
    "nccl_worlds: a planned switch and a kill within one": 2 * RUN_S + 30,
    "nccl_memory: a kill under load gives the memory back": 2 * RUN_S + 20,
}
SIDES_S = {"--matmul": 10, "--compile": 65, "--all-gpus": 45, "gpt2": 15, "resnet50": 18}


def check_seconds(name, needs_gpus, gpus):
    return CHECKS_S[name] if gpus >= needs_gpus else TO_SAY_S


def side_seconds(command):
    words = [str(word) for word in command]
    return next(seconds for word, seconds in SIDES_S.items() if word in words)


def runs(gpus):
    return RUNS["one GPU" if gpus == 1 else "several GPUs"]


def lines(checks, gpus):
    """`checks`: checks.Check of a bundle."""
    (correct, correct_min), (fast, fast_min) = runs(gpus)
    told = [f"# Plan for {gpus} GPU{'s' if gpus > 1 else ''}", "",
            f"Predictions are for {predictions.GPU}; for all GPUs, {predictions.OF_ALL_GPUS}. They",
            "are arithmetic, and seconds are guesses: no GPU has run this suite yet.", "",
            f"1. `tests/gpu/run.sh {correct} --minutes {correct_min}`", "",
            "| check | predicted | guessed s |", "|---|---|---|"]
    told += [f"| {one.name} | {predictions.of_check(one.needs_gpus, gpus)} | "
             f"{check_seconds(one.name, one.needs_gpus, gpus)} |" for one in checks]
    told += ["", f"2. `tests/gpu/run.sh {fast} --minutes {fast_min}`", "",
             "| figure | side | predicted | guessed s |", "|---|---|---|---|"]
    nowhere = pathlib.Path()
    measuring = measures.Measuring(None, None, nowhere, nowhere, "cuda", None, None, gpus)
    for side in measuring.sides(measures.workloads("cuda", gpus)):
        told.append(f"| {side.work} | {side.side} | "
                    f"{predictions.of_figure(side.work, side.side) or 'nothing'} | "
                    f"{side_seconds(side.command)} |")
    return [*told, "", f"{correct_min + fast_min} minutes at most, in 2 runs."]

