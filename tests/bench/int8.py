#!/usr/bin/env python3
"""Size, accuracy and speed of models in 8 bits and of pruned ones, beside their floats.

    int8.py --bin build/release/bin [--steps 60] [--rounds 5] [--only mlp,gpt2,resnet18]

Run it by a Python that has torch 2.11.0, torchvision 0.26.0, transformers and numpy. It exports
three programs, lets Lockstep train them for a few steps and exports them again in every form: an
MLP 768 -> 3072 -> 768, a stack of transformers' GPT-2 blocks, and torchvision's resnet18. `lockstep
export model` measures loss and accuracy on the whole evaluation data. Speed is PyTorch's:
torch.export.load opens each program, which runs on one thread, in rounds that take turns. The table
has medians and the least and the largest round. Ends with 1 if 8 bits cost more than two points of
accuracy.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import numpy
import torch
from torch import nn
from torch.export import Dim, export, save

FORMS = {"floats": (), "int8 dynamic": ("--int8=dynamic",), "int8 weights": ("--int8=weights",),
         "pruned 0.5": ("--prune", "0.5"), "pruned 0.8": ("--prune", "0.8"),
         "pruned 0.5, int8 weights": ("--prune", "0.5", "--int8=weights")}
CLASSES = 10


class Logits(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids):
        return self.model(input_ids=input_ids).logits


def mlp():
    return nn.Sequential(nn.Flatten(), nn.Linear(768, 3072), nn.ReLU(), nn.Linear(3072, 768),
                         nn.ReLU(), nn.Linear(768, CLASSES))


def gpt2():
    from transformers import GPT2Config, GPT2LMHeadModel
    return Logits(GPT2LMHeadModel(GPT2Config(vocab_size=256, n_positions=64, n_embd=256, n_layer=4,
                                             n_head=4, use_cache=False)))


def resnet18():
    import torchvision
    return torchvision.models.resnet18(num_classes=CLASSES)


# net, shape of a sample, batches whose speed is measured, learning rate
MODELS = {"mlp": (mlp, (1, 16, 48), (1, 16, 64), 0.05),
          "gpt2": (gpt2, (64,), (1, 8), 0.1),
          "resnet18": (resnet18, (1, 32, 32), (1, 16), 0.05)}


def idx(path, array):
    kind = {1: b"\0\0\x08\x01", 3: b"\0\0\x08\x03"}[array.ndim]
    path.write_bytes(kind + b"".join(n.to_bytes(4, "big") for n in array.shape) + array.tobytes())


def images(directory, shape, counts):
    """A template for each class under noise, so that accuracy is below 1."""
    directory.mkdir()
    chosen = numpy.random.default_rng(1)
    templates = chosen.normal(0, 14, (CLASSES, *shape[1:]))
    for prefix, count in counts.items():
        labels = numpy.arange(count) % CLASSES
        noisy = templates[labels] + chosen.normal(128, 60, (count, *shape[1:]))
        idx(directory / f"{prefix}-images-idx3-ubyte", noisy.clip(0, 255).astype(numpy.uint8))
        idx(directory / f"{prefix}-labels-idx1-ubyte", labels.astype(numpy.uint8))


def text(directory):
    """The pages of this repository, as bytes."""
    directory.mkdir()
    root = pathlib.Path(__file__).resolve().parents[2]
    pages = "\n".join(page.read_text() for page in sorted(root.glob("*/*.md")))
    cut = int(len(pages) * 0.9)
    (directory / "train.txt").write_text(pages[:cut])
    (directory / "val.txt").write_text(pages[cut:cut + 6_400])


def lockstep(args, *words):
    done = subprocess.run([args.bin / "lockstep", *map(str, words)], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"lockstep {words}: {done.stderr[-3000:]}")


def exports_of(args, name, scratch):
    """The directories of a trained model, by form."""
    net, shape, _, rate = MODELS[name]
    torch.manual_seed(1)
    model = net().train()
    example = (torch.randint(0, 256, (4, *shape)) if name == "gpt2" else
               torch.randn(4, 1 if name == "mlp" else 3, *shape[1:]),)
    if name == "resnet18":  # one channel of grey
        model.conv1 = nn.Conv2d(1, 64, 7, stride=2, padding=3, bias=False)
        example = (torch.randn(4, *shape),)
    save(export(model, example, dynamic_shapes=({0: Dim("batch", min=1, max=4096)},)),
         scratch / "train.pt2")
    save(export(model.eval(), example, dynamic_shapes=({0: Dim("batch", min=1, max=4096)},)),
         scratch / "eval.pt2")
    if name == "gpt2":
        text(scratch / "data")
    else:
        images(scratch / "data", shape, {"train": 4000, "t10k": 1000})
    job = {"job": name,
           "model": {"name": "exported", "path": str(scratch / "train.pt2"),
                     "eval_path": str(scratch / "eval.pt2")},
           "data": {"train": {"path": str(scratch / "data")}, "eval": {"path": str(scratch / "data")}},
           "train": {"global_batch": 32, "slots": 1, "max_steps": args.steps, "eval_batch": 50},
           "optimizer": {"name": "sgd", "lr": rate, "momentum": 0.9}}
    if name == "gpt2":
        job["model"]["block"] = shape[0]
    else:
        job["data"]["transforms"] = ["normalize"]
    (scratch / "job.json").write_text(json.dumps(job))
    lockstep(args, "run", scratch / "job.json", "--workers", 1, "--run-dir", scratch / "run")
    places = {}
    for form, words in FORMS.items():
        places[form] = scratch / form.replace(" ", "-").replace(",", "")
        lockstep(args, "export", "model", scratch / "run", places[form], *words)
    return places


def scores_of(places):
    """(bytes, loss, accuracy) by form, from the exports' measurements."""
    found = {}
    for form, place in places.items():
        measured = json.loads((place / "lockstep.json").read_text()).get("measured")
        if measured is None:  # floats: the first row of any other
            measured = json.loads((places["int8 weights"] / "lockstep.json").read_text())["measured"]
            measured = {**measured, "models": measured["models"][:1]}
        if "why_not" in measured or measured["samples"] != measured["of"]:
            sys.exit(f"{place}: not measured on all data: {measured}")
        row = measured["models"][-1]
        found[form] = ((place / "model.pt2").stat().st_size, row["loss"], row["accuracy"])
    return found


def milliseconds(args, name, places):
    """The milliseconds of each round, by form and batch."""
    nets = {form: torch.export.load(place / "model.pt2").module() for form, place in places.items()}
    shape, batches = MODELS[name][1:3]
    rounds = {}
    with torch.inference_mode():
        for batch in batches:
            x = (torch.randint(0, 256, (batch, *shape)) if name == "gpt2"
                 else torch.randn(batch, *shape))
            for net in nets.values():
                net(x)
            for _ in range(args.rounds):
                for form, net in nets.items():
                    begun = time.perf_counter()
                    net(x)
                    rounds.setdefault((form, batch), []).append(1e3 * (time.perf_counter() - begun))
    return rounds


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default=",".join(MODELS))
    args = parser.parse_args()
    torch.set_num_threads(1)
    print(f"CPU capability of PyTorch: {torch.backends.cpu.get_cpu_capability()}")
    worst = 0.0
    for name in args.only.split(","):
        with tempfile.TemporaryDirectory() as scratch:
            places = exports_of(args, name, pathlib.Path(scratch))
            scores = scores_of(places)
            rounds = milliseconds(args, name, places)
        batches = MODELS[name][2]
        print(f"\n{name}\n| form | MB | loss | accuracy | "
              + " | ".join(f"ms, batch {batch}" for batch in batches)
              + " |\n|" + "---|" * (4 + len(batches)))
        for form, (size, loss, accuracy) in scores.items():
            times = [rounds[form, batch] for batch in batches]
            cells = [f"{statistics.median(t):.2f} ({min(t):.2f} to {max(t):.2f})" for t in times]
            print(f"| {form} | {size / 1e6:.2f} | {loss:.4f} | {accuracy:.4f} | "
                  + " | ".join(cells) + " |")
            if form.startswith("int8"):
                worst = max(worst, scores["floats"][2] - accuracy)
    return 0 if worst <= 0.02 else 1


if __name__ == "__main__":
    sys.exit(main())
