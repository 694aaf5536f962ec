#!/usr/bin/env python3
"""Remakes the archives of this folder and expected.json with PyTorch 2.11, numpy and xxhash:

    python3 make.py FINGERPRINTS [DIRECTORY]        (this folder by default)

FINGERPRINTS has the table's fingerprints with two and with three classes, as JSON {"2": ..., "3":
...}; own_loss_test.cc prints one that expected.json does not have. The table is a formula, table()
below. Batches follow Lockstep's order (order.py). Each model takes ten steps of SGD (lr 0.5). The
last step of an epoch has three samples, so one of its four slots is empty, and Lockstep skips the
step if all its labels are ignored. expected.json holds for each run: the loss and the metrics of
each step, the norm of each gradient of the first, and the evaluation of the whole table at the
end."""
import importlib.util
import json
import pathlib
import sys

import torch
import xxhash
from torch.export import Dim, export
from torch.nn import functional

HERE = pathlib.Path(__file__).resolve().parent
sys.path += [str(HERE), str(HERE.parent), str(HERE.parent / "exported")]
import own_models as models
from order import MASK, EpochOrder
from torchscript import save

_spec = importlib.util.spec_from_file_location("exported", HERE.parent / "exported" / "make.py")
exported = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(exported)

SAMPLES, BATCH, STEPS, SEED, LR = 63, 20, 10, 11, 0.5

ROWS = ("x", "label")
GOOD = {  # archive: model, its inputs
    "one_output": (models.OneOutput, ("x",)),
    "per_sample": (models.PerSample, ROWS),
    "weighted": (models.Weighted, ("target", "x")),
    "scalar": (models.Scalar, ("x", "y")),
    "auto": (models.Auto, ("x",)),
    "no_weight": (models.NoWeight, ROWS),
    "odd_weight": (models.OddWeight, ROWS),
}
REFUSED = {
    "refused_negative": (models.Negative, ROWS),
    "refused_taken_name": (models.TakenName, ROWS),
    "refused_matrix": (models.Matrix, ROWS),
    "refused_not_finite": (models.NotFinite, ROWS),
    "refused_no_loss": (models.NoLoss, ROWS),
    "refused_two_labels": (models.TwoLabels, ("x", "pairs")),
    "refused_shifts": (models.TinyForCausalLM, ("input_ids", "labels")),
}
# For programs that the C++ tests do not train: model, its inputs, in training mode, and the sizes of
# a batch (one: that one alone).
MORE = {
    "dense": (models.Dense, ("image", "label"), True, (1, 64)),
    "dense.eval": (models.Dense, ("image", "label"), False, (1, 64)),
    "dense.predict": (models.DenseLogits, ("image",), False, (4,)),
    "weighted.predict": (models.WeightedLogits, ("x",), False, (2, 64)),
}
RUNS = {  # run: archive, train.loss, classes of the table
    "cross_entropy_of_its_own": ("per_sample", "", 3),
    "weighted": ("weighted", "", 3),
    "scalar": ("scalar", "", 3),
    "auto": ("auto", "", 3),
    "bce": ("one_output", "bce", 2),
    "mse": ("one_output", "mse", 3),
    "l1": ("one_output", "l1", 3),
    "huber": ("one_output", "huber", 3),
}


def table(classes):
    i = torch.arange(SAMPLES * models.COLUMNS)
    x = ((i * 7919 + 13) % 256).float() / 128 - 1
    labels = (torch.arange(SAMPLES) * 31 + 7) % 11 % classes
    return x.view(SAMPLES, models.COLUMNS), labels


def example(name):
    samples = 4
    x, labels = table(3)
    tokens = torch.arange(samples * 8).view(samples, 8) % 16
    image = ((torch.arange(samples * 64) * 7919 + 13) % 256).float().view(samples, 1, 8, 8) / 128 - 1
    return {"image": image, "x": x[:samples], "label": labels[:samples], "target": labels[:samples],
            "y": labels[:samples].float(), "input_ids": tokens, "labels": tokens,
            "pairs": torch.zeros(samples, 2, dtype=torch.int64)}[name]


def program_of(model, inputs, sizes=(1, 64)):
    if len(sizes) == 1:  # the example's
        return export(model, tuple(example(name) for name in inputs))
    dim = Dim("batch", min=sizes[0], max=sizes[1])
    return export(model, tuple(example(name) for name in inputs),
                  dynamic_shapes=tuple({0: dim} for _ in inputs))


def made(name):
    torch.manual_seed(sum(name.encode()))
    return {**GOOD, **REFUSED}[name][0]()


ELEMENTS = {"bce": functional.binary_cross_entropy_with_logits, "mse": functional.mse_loss,
            "l1": functional.l1_loss, "huber": functional.huber_loss}


def forward(model, archive, loss, x, labels):
    """The mean loss, and the means of the metrics."""
    if archive == "one_output":
        return ELEMENTS[loss](model(x), labels.float().unsqueeze(1)), {}
    if archive == "scalar":
        return model(x, labels.float()), {}
    if archive == "auto":
        return model(x)["loss"].mean(), {}
    if archive == "per_sample":
        return model(x, labels).mean(), {}
    out = model(labels, x)
    metrics = {name: out[name].mean().item() for name in ("hit", "size")}
    return out["loss"].sum() / out["weight"].sum(), metrics


def batches(fingerprint):
    digest = xxhash.xxh3_128_intdigest(fingerprint.encode())
    a_epoch = -(-SAMPLES // BATCH)
    for step in range(STEPS):
        order = EpochOrder(SEED, step // a_epoch, (digest & MASK, digest >> 64), SAMPLES)
        first = step % a_epoch * BATCH
        yield [order.at(p) for p in range(first, min(first + BATCH, SAMPLES))]


def run(archive, loss, classes, fingerprint):
    model = made(archive)
    x, labels = table(classes)
    optimizer = torch.optim.SGD(model.parameters(), lr=LR)
    out = {"archive": archive, "loss": loss, "classes": classes, "losses": [], "skipped": [], "metrics": []}
    for step, chosen in enumerate(batches(fingerprint)):
        optimizer.zero_grad()
        value, metrics = forward(model, archive, loss, x[chosen], labels[chosen])
        has_mean = bool(value.isfinite())  # else nothing had any weight, and Lockstep skips the step
        if has_mean:
            value.backward()
        if step == 0:
            out["gradient_norms"] = {name: p.grad.double().norm().item()
                                     for name, p in model.named_parameters()}
            assert has_mean
        if has_mean:
            optimizer.step()
        out["skipped"].append(not has_mean)
        out["losses"].append(value.item() if has_mean else 0)
        out["metrics"].append(metrics)
    with torch.no_grad():
        value, metrics = forward(model, archive, loss, x, labels)
        out["eval"] = {"loss": value.item(), "metrics": metrics}
        if loss == "bce":
            out["eval"]["correct"] = ((model(x)[:, 0] > 0) == (labels == 1)).sum().item()
    return out


def main():
    fingerprints = json.loads(sys.argv[1])  # {"2": "...", "3": "..."}, by classes
    folder = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else HERE
    torch.set_num_threads(1)
    for name, (_, inputs) in {**GOOD, **REFUSED}.items():
        exported.write(folder / f"{name}.pt2",
                       exported.contents(program_of(made(name), inputs)))
    for name, (kind, inputs, is_training, sizes) in MORE.items():
        torch.manual_seed(1)
        program = program_of(kind().train(is_training), inputs, sizes)
        exported.write(folder / f"{name}.pt2", exported.contents(program))
    save(models.WeightedScript(made("weighted")), folder / "weighted.pt")
    expected = {"fingerprints": fingerprints,
                "runs": {name: run(*settings, fingerprints[str(settings[2])])
                         for name, settings in RUNS.items()}}
    (folder / "expected.json").write_text(json.dumps(expected, indent=1) + "\n")


if __name__ == "__main__":
    main()
