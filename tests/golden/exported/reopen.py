#!/usr/bin/env python3
"""Opens programs that Lockstep wrote with PyTorch, and compares what they give with eager modules.

    reopen.py DIRECTORY      ends with 77 where there is no torch 2.11

DIRECTORY holds NAME.train.pt2 and NAME.eval.pt2 for the models below: this folder's programs with
all weights and running statistics halved. All bits must be equal, since the same operators run in
the same order. Leaves there m.pt2 and m.eval.pt2, which the code on the page MODELS.md writes."""
import os
import pathlib
import re
import sys

try:
    import torch
except ImportError:
    sys.exit(77)
if not torch.__version__.startswith("2.11."):
    sys.exit(77)

import models
from make import GOOD, IMAGES, batch, made

NAMES = ("mlp", "tied_lm", "convnet", "unet", "vit", "strided", "regions", "in_autocast")
KINDS = {**GOOD, "in_autocast": (models.InAutocast, IMAGES)}


def halved(name):
    model = made(KINDS[name][0])
    with torch.no_grad():
        seen = set()
        for tensor in (*model.parameters(), *model.buffers()):
            if tensor.is_floating_point() and tensor.data_ptr() not in seen:
                seen.add(tensor.data_ptr())
                tensor.mul_(0.5)
    return model


def outputs(run, data):
    torch.manual_seed(7)
    return run(batch(data)[0].clone())


def run_page(folder):
    root = pathlib.Path(__file__).resolve().parents[3]
    section = (root / "worker/MODELS.md").read_text().split("## Exported programs")[1]
    code = re.search(r"```python\n(.*?)```", section, re.S).group(1)
    sys.path.append(str(root / "worker/python"))
    os.chdir(folder)
    exec(code, {})  # noqa: S102


def main():
    torch.set_num_threads(1)
    folder = pathlib.Path(sys.argv[1])
    run_page(folder)
    for name in NAMES:
        data = KINDS[name][1]
        for mode, is_training in (("train", True), ("eval", False)):
            program = torch.export.load(folder / f"{name}.{mode}.pt2")
            with torch.set_grad_enabled(is_training):
                found = outputs(program.module(check_guards=False), data)
                wanted = outputs(halved(name).train(is_training), data)
            # Eager attention takes a fused path in evaluation.
            near = torch.allclose(found, wanted, atol=1e-5) if name == "vit" else torch.equal(
                found, wanted)
            if not near:
                sys.exit(f"{name}.{mode}.pt2 gives other values, by up to "
                         f"{(found - wanted).abs().max().item()}")
            counts = [t for n, t in program.state_dict.items() if n.endswith("num_batches_tracked")]
            if any(int(t) > 0 for t in counts) and not is_training:
                sys.exit(f"{name}.{mode}.pt2 counts steps")


if __name__ == "__main__":
    main()
