"""What should be fast: each figure beside PyTorch's on the same device, in turn, as medians."""
import dataclasses
import json
import os
import pathlib
import statistics
import struct
import subprocess
import sys

PEER = pathlib.Path(__file__).resolve().with_name("peer.py")
VOCAB = 50257  # GPT-2's
IMAGE = 224


@dataclasses.dataclass
class Workload:
    name: str
    unit: str
    options: list  # of bench_train and of peer.py alike
    scale: int  # units a sample
    flops_per_sample: float = 0  # forward and backward, for the share of the peak


def gpt2(size, layers, width, block, batch, steps):
    """Operations by the PaLM paper's count (Chowdhery et al. 2022, appendix B): 6 a weight and
    token, and 12 x layers x width x block a token for attention."""
    weights = layers * 12 * width**2 + VOCAB * width
    return Workload(f"gpt2 {size} bf16, {batch} x {block} tokens", "tokens/s",
                    ["--model", "gpt2", "--size", size, "--block", str(block), "--precision", "bf16",
                     "--global-batch", str(batch), "--steps", str(steps)],
                    block, block * (6 * weights + 12 * layers * width * block))


def resnet50(precision, batch, steps):
    return Workload(f"resnet50 {precision}, {batch} x 3 x {IMAGE} x {IMAGE}", "images/s",
                    ["--model", "resnet50", "--precision", precision, "--global-batch", str(batch),
                     "--steps", str(steps)], 1, 3 * 2 * 4.09e9)  # He et al. 2015: 4.09 G multiply-adds


def workloads(device):
    if device == "cpu":  # tries the suite; most processors have no instructions for fp16
        return [gpt2("d4", 4, 256, 64, batch=2, steps=3), resnet50("bf16", batch=2, steps=2)]
    return [gpt2("d12", 12, 768, 1024, batch=32, steps=30), resnet50("fp16", batch=256, steps=30)]


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


def rate(command):
    result = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    for line in reversed(result.stdout.splitlines()):
        if line.startswith("{"):
            return json.loads(line)
    raise RuntimeError(f"{' '.join(map(str, command))} ended with {result.returncode}:\n"
                       f"{result.stdout[-2000:]}{result.stderr[-2000:]}")


def in_turn(sides, rounds):
    """{name: [answer of each round]}: a round is one of each, so that all see the same machine."""
    answers = {name: [] for name in sides}
    for _ in range(rounds):
        for name, command in sides.items():
            answers[name].append(rate(command))
    return answers


def figure(workload, answers, peer, what=None):
    ours = [a["samples_per_second"] * workload.scale for a in answers["ours"]]
    theirs = [a["samples_per_second"] * workload.scale for a in answers[peer]]
    return {"what": what or workload.name, "unit": workload.unit, "ours": ours, "peer": peer,
            "peers": theirs, "ratio": statistics.median(ours) / statistics.median(theirs)}


def number(value):
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def cells(values):
    """Median and range, as two columns of a table."""
    return f"{number(statistics.median(values))} | {number(min(values))} to {number(max(values))}"


def row(f):
    peer = f"{f['peer']} | {cells(f['peers'])} | {f['ratio']:.3f}" if "peers" in f else " | | | "
    return f"| {f['what']} | {f['unit']} | {cells(f['ours'])} | {peer} |"


def measure_all(programs, out, device, rounds, say):
    say("speed")
    tokens, images = out / "tokens.bin", out / "images"
    write_tokens(tokens, 1 << (20 if device == "cuda" else 14))
    write_images(images, 2048 if device == "cuda" else 16)
    figures = []
    peak = [rate([sys.executable, PEER, "--matmul", "--device", device])["tflops"]
            for _ in range(rounds)]
    figures.append({"what": "bf16 matrix product, the peak as measured", "unit": "TFLOP/s",
                    "ours": peak})
    say("  " + row(figures[-1]))
    for work in workloads(device):
        data = tokens if "gpt2" in work.options else images
        common = [*work.options, "--device", device, "--data", data, "--warmup-steps",
                  10 if device == "cuda" else 1]
        bench = [programs / "bench_train", *common]
        sides = {"ours": [*bench, "--ranks", 1],
                 "ours, fast numerics": [*bench, "--ranks", 1, "--numerics", "fast"],
                 "bare LibTorch loop": [*bench, "--bare", "--numerics", "fast"],
                 "PyTorch eager": [sys.executable, PEER, *common]}
        if device == "cuda":
            sides["PyTorch compiled"] = [*sides["PyTorch eager"], "--compile"]
        answers = in_turn(sides, rounds)
        for peer in list(sides)[1:]:
            figures.append(figure(work, answers, peer))
            say("  " + row(figures[-1]))
        figures += derived(work, answers["ours"], statistics.median(peak))
        for f in figures[-2:]:
            say("  " + row(f))
    return figures


def derived(work, answers, peak_tflops):
    """Of ours alone: the share of the measured peak, and of a step spent waiting for data."""
    share = [100 * a["samples_per_second"] * work.flops_per_sample / (peak_tflops * 1e12)
             for a in answers]
    waited = [100 * a["data_us"] / a["step_us"] for a in answers]
    return [{"what": f"{work.name}: share of the peak", "unit": "%", "ours": share},
            {"what": f"{work.name}: share of a step that waits for data", "unit": "%",
             "ours": waited}]
