#!/usr/bin/env python3
"""Remakes the archives of this folder and expected.json with PyTorch 2.11:

    python3 make.py [DIRECTORY]        (this folder by default)

Batches are formulas (batch() below), so C++ makes the same ones. Each model of models.py takes five
steps of SGD (lr 0.1) on one batch; torch.manual_seed(100 + step) stands before each forward.
expected.json holds for each: the losses, the norm of each gradient in the first step, and the
logits of the trained model in evaluation.

torch.export.save() keeps whole stack traces, with paths of this machine, and its JSON has spaces.
This script rewrites the archives with the model's own frame only."""
import io
import json
import pathlib
import re
import sys
import warnings
import zipfile

import torch
from torch import nn
from torch.export import Dim, export, save

import models
import refused
from models import LENGTH, TOKENS

STEPS, BATCH = 5, 8
IMAGES, SEQUENCES = "images", "sequences"

GOOD = {  # name: model, its data, the samples that a batch may have
    "mlp": (models.Mlp, IMAGES, (1, 64)),
    "tied_lm": (models.TiedLm, SEQUENCES, (1, 64)),
    "convnet": (models.ConvNet, IMAGES, (1, 64)),
    "unet": (models.UNet, IMAGES, (1, 64)),
    "vit": (models.Vit, IMAGES, (1, 64)),
    "regions": (models.Regions, IMAGES, (1, 64)),
    "stochastic_depth": (models.StochasticDepth, IMAGES, (1, 64)),
    "counted": (models.Counted, IMAGES, (1, 64)),
    "sparse_embedding": (models.SparseEmbedding, SEQUENCES, (1, 64)),
    "in_place_input": (models.InPlaceInput, IMAGES, (1, 64)),
    "strided": (models.Strided, IMAGES, (1, 64)),
    "from_two": (models.Mlp, IMAGES, None),  # Dim.DYNAMIC
}
HAVE_EVAL = ("stochastic_depth",)  # also have NAME.eval.pt2


def batch(data, seed=0):
    """Inputs of `BATCH` samples and their labels."""
    if data == IMAGES:
        i = torch.arange(BATCH * 64)
        x = (((i * 7919 + 13 + seed) % 256).float() / 128 - 1).view(BATCH, 1, 8, 8)
        return x, (torch.arange(BATCH) * 31 + 7) % models.CLASSES
    i = torch.arange(BATCH * LENGTH)
    x = ((i * 7919 + 13 + seed) % TOKENS).view(BATCH, LENGTH)
    return x, (x + 3) % TOKENS


def own_frame(trace):
    """The innermost frame of the models' own files, without its folders; "" if there is none."""
    frames = re.findall(r'File "([^"]*)", (line \d+, in \w+\n.*)', trace)
    own = [(pathlib.PurePath(file).name, rest) for file, rest in frames if "site-packages" not in file]
    return f'File "{own[-1][0]}", {own[-1][1]}' if own else ""


def slim(graph):
    for node in graph["nodes"]:
        if "stack_trace" in node["metadata"]:
            node["metadata"]["stack_trace"] = own_frame(node["metadata"]["stack_trace"])
        node["metadata"].pop("torch_fn", None)
        for argument in node["inputs"]:
            if "as_graph" in argument["arg"]:
                slim(argument["arg"]["as_graph"]["graph"])


def contents(program):
    """The files of a saved program by their names below its root."""
    whole = io.BytesIO()
    save(program, whole)
    with zipfile.ZipFile(whole) as archive:
        files = {name.split("/", 1)[1]: archive.read(name) for name in archive.namelist()}
    for name in files:
        if name == "models/model.json":
            graph = json.loads(files[name])
            slim(graph["graph_module"]["graph"])
            files[name] = json.dumps(graph, separators=(",", ":")).encode()
    return files


def write(path, files):
    writer = torch._C.PyTorchFileWriter(str(path))
    for name, content in files.items():
        if not name.startswith(".data/"):
            writer.write_record(name, content, len(content))
    writer.write_end_of_file()


def program_of(model, data, samples):
    x, _ = batch(data)
    dim = Dim.DYNAMIC if samples is None else Dim("batch", min=samples[0], max=samples[1])
    return export(model, (x.clone(),), dynamic_shapes=({0: dim},))


def train(model, data):
    x, labels = batch(data)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses, norms = [], {}
    for step in range(STEPS):
        optimizer.zero_grad()
        torch.manual_seed(100 + step)
        logits = model(x.clone())
        loss = nn.functional.cross_entropy(logits.flatten(0, -2), labels.flatten())
        loss.backward()
        if step == 0:
            dense = {n: p.grad.to_dense() for n, p in model.named_parameters() if p.grad is not None}
            norms = {name: gradient.double().norm().item() for name, gradient in dense.items()}
        optimizer.step()
        losses.append(loss.item())
    model.eval()
    with torch.no_grad():
        logits = model(x.clone())
    return {"data": data, "losses": losses, "gradient_norms": norms,
            "eval_logits": [float(f"{v:.8g}") for v in logits.flatten().tolist()]}


def made(kind):
    torch.manual_seed(1)
    return kind().train()


def make_refused(folder):
    plain = program_of(made(refused.Linear), IMAGES, (1, 64))
    for name in ("ForeignOperator", "WeightViews", "Branches", "DoubleWeight",
                 "WritesWeight", "Periodic", "DoubleStatistics"):
        file = re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()
        program = program_of(made(getattr(refused, name)), IMAGES, (1, 64))
        write(folder / f"refused_{file}.pt2", contents(program))
    write(folder / "refused_decomposed.pt2", contents(plain.run_decompositions()))
    files = contents(plain)
    graph = json.loads(files["models/model.json"])
    weights = json.loads(files["data/weights/model_weights_config.json"])
    put = lambda name, changed: write(folder / f"refused_{name}.pt2", {**files, **changed})
    text = lambda value: json.dumps(value, separators=(",", ":")).encode()
    opens = json.loads(files["models/model.json"])
    opens["graph_module"]["graph"]["nodes"][0]["target"] = "torch.ops.aten.from_file.default"
    put("from_file", {"models/model.json": text(opens)})
    put("big_endian", {"byteorder": b"big"})
    put("schema", {"models/model.json": text({**graph, "schema_version": {"major": 9, "minor": 0}})})
    put("guard", {"models/model.json": text({**graph, "guards_code": ["L['x'].size()[0] % 2 == 0"]})})
    weights["config"]["fc.bias"]["use_pickle"] = True
    put("pickled", {"data/weights/model_weights_config.json": text(weights)})


def make_evaluated(folder):
    """Makes programs whose evaluation reads a counter, or has another constant."""
    counter, unused = made(models.CounterInEval), made(models.Unused)
    for name, model in (("counter_in_eval", counter), ("unused", unused)):
        write(folder / f"{name}.pt2", contents(program_of(model, IMAGES, (1, 64))))
    with torch.no_grad():
        unused.gain.mul_(2)
    for name, model in (("counter_in_eval", counter), ("unused", unused)):
        write(folder / f"{name}.eval.pt2",
              contents(program_of(model.eval(), IMAGES, (1, 64))))


def main():
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent)
    expected = {}
    for name, (kind, data, samples) in GOOD.items():
        model = made(kind)
        write(folder / f"{name}.pt2", contents(program_of(model, data, samples)))
        if name in HAVE_EVAL:
            write(folder / f"{name}.eval.pt2", contents(program_of(model.eval(), data, samples)))
            model.train()
        expected[name] = train(model, data)
    write(folder / "in_autocast.pt2",
          contents(program_of(made(models.InAutocast), IMAGES, (1, 64))))
    write(folder / "named.pt2", contents(program_of(made(models.Named), IMAGES, (1, 64))))
    make_evaluated(folder)
    make_refused(folder)
    rows = ",\n".join(f'"{name}": {json.dumps(row)}' for name, row in expected.items())
    (folder / "expected.json").write_text("{\n" + rows + "\n}\n")


if __name__ == "__main__":
    main()
