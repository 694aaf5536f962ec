"""The measurements of the suite: each figure beside PyTorch's on the same device, in turn, as
medians.

A round measures each side of each workload once. The first round begins with the workloads that
matter most. The table gives the reason of a side that fails, and the other sides go on.
"""
import dataclasses
import json
import math
import os
import pathlib
import re
import statistics
import struct
import sys

import predictions
from budget import Budget
from running import Runner

PEER = pathlib.Path(__file__).resolve().with_name("peer.py")
ALL_GPUS = PEER.with_name("all_gpus.py")
VOCAB = 50257  # GPT-2's
IMAGE = 224


@dataclasses.dataclass
class Workload:
    name: str
    unit: str
    options: list  # of bench_train and of peer.py alike
    scale: int  # units a sample
    flops_per_sample: float = 0  # forward and backward, for the share of the peak
    gpus: int = 1
    is_start: bool = False  # measured is the time of a whole program with one step


def gpt2(size, layers, width, block, batch, steps, gpus=1):
    """Operations by the PaLM paper's count (Chowdhery et al. 2022, appendix B): 6 for each weight
    and token, and 12 x layers x width x block a token for attention. `batch`: of one GPU."""
    weights = layers * 12 * width**2 + VOCAB * width
    several = f", {gpus} GPUs" if gpus > 1 else ""
    return Workload(f"gpt2 {size} bf16{several}, {batch * gpus} x {block} tokens", "tokens/s",
                    ["--model", "gpt2", "--size", size, "--block", str(block), "--precision", "bf16",
                     "--global-batch", str(batch * gpus), "--steps", str(steps)],
                    block, block * (6 * weights + 12 * layers * width * block), gpus)


def resnet50(precision, batch, steps):
    return Workload(f"resnet50 {precision}, {batch} x 3 x {IMAGE} x {IMAGE}", "images/s",
                    ["--model", "resnet50", "--precision", precision, "--global-batch", str(batch),
                     "--steps", str(steps)], 1, 3 * 2 * 4.09e9)  # He et al. 2015: 4.09 G multiply-adds


def start_of_gpt2(size):
    """CUDA loads kernels at the start (EAGER, which workers that sum over NCCL need) or at their
    first launch (LAZY, with a warm-up of all kernels before the first sum)."""
    return Workload(f"gpt2 {size} bf16, a program with one step", "s",
                    ["--model", "gpt2", "--size", size, "--block", "1024", "--precision", "bf16",
                     "--global-batch", "8", "--steps", "1"], 1, is_start=True)


def workloads(device, gpus=1):
    if device == "cpu":  # tries the suite; most processors have no instructions for fp16
        return [gpt2("d4", 4, 256, 64, batch=2, steps=3), resnet50("bf16", batch=2, steps=2),
                gpt2("d4", 4, 256, 64, batch=1, steps=3, gpus=2)]
    works = [gpt2("d12", 12, 768, 1024, batch=32, steps=30), resnet50("fp16", batch=256, steps=30)]
    works.append(start_of_gpt2("d12"))
    if gpus > 1:
        works.append(gpt2("d12", 12, 768, 1024, batch=32, steps=60, gpus=gpus))
    return works


def write_tokens(path, count):
    """uint16 as nanoGPT writes them: a repeatable stream that holds the largest token."""
    state, tokens = 1, [VOCAB - 1]
    while len(tokens) < count:
        state = (state * 1103515245 + 12345) & 0x7FFFFFFF
        tokens.append((state >> 8) % VOCAB)
    path.write_bytes(struct.pack(f"<{count}H", *tokens))


def write_images(directory, count):
    directory.mkdir(exist_ok=True)
    noise = os.urandom(1 << 20)
    pixels = count * 3 * IMAGE * IMAGE
    with open(directory / "train-images-idx4-ubyte", "wb") as f:
        f.write(struct.pack(">IIIII", 0x804, count, 3, IMAGE, IMAGE))
        for begin in range(0, pixels, len(noise)):
            f.write(noise[: min(len(noise), pixels - begin)])
    with open(directory / "train-labels-idx1-ubyte", "wb") as f:
        f.write(struct.pack(">II", 0x801, count) + bytes(i % 256 for i in range(count)))


OURS = ("ours", "ours, fast numerics", "ours, LAZY loading")
PEAK = predictions.PEAK
SIDE_LIMIT_S = {"cuda": 150, "cpu": 300}  # torch.compile takes a minute
LEAST_S = 5  # what is left must at least be this, for a side to begin


@dataclasses.dataclass
class Side:
    work: str  # the workload's name
    side: str
    command: list
    env: dict = dataclasses.field(default_factory=dict)
    is_start: bool = False


class Measuring:
    """Everything that measuring needs. `say` takes a line for people, `add` an answer: a dict with
    work, side, round and what the program printed, or else "failed" or "not_measured" with why."""

    def __init__(self, runner: Runner, budget: Budget, programs, out, device, say, add, gpus=1):
        self.runner, self.budget, self.programs, self.gpus = runner, budget, programs, gpus
        self.out, self.device, self.say, self.add = out, device, say, add
        self.failed, self.took = set(), {}  # by (work, side)

    def sides(self, works):
        """The sides in the order of their worth: ours and its peer before variants."""
        matmul = [sys.executable, PEER, "--matmul", "--device", self.device]
        sides = [Side(PEAK, "PyTorch eager", matmul)]
        by_work = [self._sides_of(work) for work in works]
        for name in dict.fromkeys(name for one in by_work for name in one):
            sides += [one[name] for one in by_work if name in one]
        return sides

    def _sides_of(self, work):
        data = self.out / ("tokens.bin" if "gpt2" in work.options else "images")
        warm_up = 0 if work.is_start else 10 if self.device == "cuda" else 1
        common = [*work.options, "--device", self.device, "--data", data, "--warmup-steps", warm_up]
        if work.gpus > 1:
            commands = self._sides_of_all_gpus(work, common)
        elif work.is_start:
            return self._sides_of_start(work, common)
        else:
            commands = self._sides_of_one_gpu(common)
        return {name: Side(work.name, name, command) for name, command in commands.items()}

    def _sides_of_start(self, work, common):
        command = [self.programs / "bench_train", *common, "--ranks", 1]
        return {name: Side(work.name, name, command, {"CUDA_MODULE_LOADING": loading}, True)
                for name, loading in (("ours", "EAGER"), ("ours, LAZY loading", "LAZY"))}

    def _sides_of_one_gpu(self, common):
        ours, eager = [self.programs / "bench_train", *common], [sys.executable, PEER, *common]
        sides = {"ours": [*ours, "--ranks", 1],
                 "PyTorch eager": eager,
                 "ours, fast numerics": [*ours, "--ranks", 1, "--numerics", "fast"],
                 "bare LibTorch loop": [*ours, "--bare", "--numerics", "fast"]}
        if self.device == "cuda":
            sides["PyTorch compiled"] = [*eager, "--compile"]
        return sides

    def _sides_of_all_gpus(self, work, common):
        """Compares a whole run of ours, with its coordinator, with torchrun."""
        ours = [sys.executable, ALL_GPUS, "--all-gpus", work.gpus, "--programs", self.programs,
                "--out", self.out, *common]
        torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone",
                    "--nproc-per-node", work.gpus, PEER, *common, "--all-gpus", work.gpus]
        return {"ours": ours, "PyTorch DDP, torchrun": torchrun,
                "ours, fast numerics": [*ours, "--numerics", "fast"]}

    def run(self, works, rounds):
        sides = self.sides(works)
        if not sides:
            return
        if any("gpt2" in work.options for work in works):
            write_tokens(self.out / "tokens.bin", 1 << (20 if self.device == "cuda" else 14))
        if any("resnet50" in work.options for work in works):
            write_images(self.out / "images", 2048 if self.device == "cuda" else 16)
        for number in range(1, rounds + 1):
            for side in sides:
                self._measure(side, number)

    def _measure(self, side, number):
        key, left = (side.work, side.side), self.budget.left()
        # In a later round, only what will surely end; in the first one, whatever may.
        about = {"work": side.work, "side": side.side, "round": number}
        if key in self.failed or left < max(LEAST_S, 1.5 * self.took.get(key, 0)):
            if number == 1:
                self.add({**about, "not_measured": "no time left"})
            return
        limit = min(SIDE_LIMIT_S[self.device], left)
        log = self.out / f"{slug(f'{side.work} {side.side}')}.{number}.log"
        ended = self.runner.run(side.command, limit, log, side.env)
        answer = last_answer(ended.text) if ended.code == 0 else None
        if answer is not None and side.is_start:
            answer = {"seconds": ended.seconds}
        self.took[key] = ended.seconds
        if answer is None and ended.code is None and limit < SIDE_LIMIT_S[self.device]:
            self.failed.add(key)
            self.add({**about, "not_measured": "no time left"})
        elif answer is None:
            self.failed.add(key)
            said = next((line for line in reversed(ended.text.splitlines()) if line.strip()), "")
            reason = f"{ended.why()}: {said[:200]}"
            self.say(f"  {side.work}, {side.side}: FAILED, {reason} ({log})")
            self.add({**about, "failed": reason})
        else:
            value, unit = figure(answer, side.work)
            predicted = predictions.of_figure(side.work, side.side)
            self.say(f"  {side.work}, {side.side}, round {number}: {spelled(value)} {unit}"
                     + (f" (predicted: {predicted})" if predicted else ""))
            self.add({**about, **answer})


def slug(text):
    return "-".join("".join(c if c.isalnum() else " " for c in text).split())


def last_answer(text):
    """The last JSON object with a figure that a program printed; None if there is none."""
    for line in reversed(text.splitlines()):
        if line.startswith("{"):
            try:
                answer = json.loads(line)
            except ValueError:
                continue
            rate = answer.get("tflops", answer.get("samples_per_second"))
            if isinstance(rate, (int, float)) and math.isfinite(rate) and rate > 0:
                return answer
    return None


def workload_of(name):
    words = re.search(r", (\d+) GPUs", name)
    gpus = int(words[1]) if words else 1
    works = [work for device in ("cuda", "cpu") for work in workloads(device, gpus)]
    return next(work for work in works if work.name == name)


def figure(answer, work):
    """(value, unit)"""
    if "tflops" in answer:
        return answer["tflops"], "TFLOP/s"
    if "seconds" in answer:
        return answer["seconds"], "s"
    work = workload_of(work)
    return answer["samples_per_second"] * work.scale, work.unit


def spelled(value):
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def cells(values):
    """Median and range, as two columns of a table."""
    median, least, most = map(spelled, (statistics.median(values), min(values), max(values)))
    return f"{median} | {least} to {most}"


def row(what, side, unit, values, failed, beside=""):
    figures = cells(values) if values else f"FAILED | {failed}" if failed else "not measured | "
    return (f"| {what} | {side} | {unit} | {figures} | {len(values)} | {beside} | "
            f"{predictions.of_figure(what, side)} |")


def table(answers):
    """Lines: a row for each side of each workload, as far as they are measured."""
    if not answers:
        return []
    lines = ["| what | side | unit | median | range | rounds | ours / this | predicted |",
             "|---|---|---|---|---|---|---|---|"]
    for work in dict.fromkeys(answer["work"] for answer in answers):
        of_work = [answer for answer in answers if answer["work"] == work]
        values, failed = {}, {}
        for answer in of_work:
            side = values.setdefault(answer["side"], [])
            if "failed" in answer:
                failed[answer["side"]] = " ".join(answer["failed"].split()).replace("|", "/")
            elif "not_measured" not in answer:
                side.append(figure(answer, work)[0])
        ours = values.get("ours")
        unit = "TFLOP/s" if work == PEAK else workload_of(work).unit
        for side, measured in values.items():
            ratio = (f"{statistics.median(ours) / statistics.median(measured):.3f}"
                     if ours and measured and side != "ours" else "")
            lines.append(row(work, side, unit, measured, failed.get(side), ratio))
        lines += derived(work, of_work, answers)
    return lines


def derived(work, of_work, answers):
    """Rows for our side alone: the share of the measured peak, and the share of a step that waits
    for data."""
    ours = [a for a in of_work if a["side"] == "ours" and "samples_per_second" in a]
    peak = [a["tflops"] for a in answers if "tflops" in a]
    lines = []
    if ours and peak:
        most = statistics.median(peak) * 1e12 * workload_of(work).gpus
        share = [100 * a["samples_per_second"] * workload_of(work).flops_per_sample / most
                 for a in ours]
        lines.append(row(f"{work}: share of the peak", "ours", "%", share, None))
    if ours and all("data_us" in a and "step_us" in a for a in ours):
        waited = [100 * a["data_us"] / a["step_us"] for a in ours]
        lines.append(row(f"{work}: share of a step that waits for data", "ours", "%", waited, None))
    return lines
