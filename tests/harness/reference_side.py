"""PyTorch's side of tests with its models, run by $(deploy/install_deps.sh --print-models-python):

    reference_side.py make DIRECTORY NAME...    NAME/train.pt2, NAME/eval.pt2 for some, NAME/data/
    reference_side.py check DIRECTORY [NAME JOB.json EXPORTED]...

`make` prints by name what a job needs to know. `check` trains each NAME on the job's batches, in
its slots, and opens the files that `lockstep export model` wrote for the run."""
import json
import math
import pathlib
import sys
import warnings

import numpy
import torch
import xxhash
from torch.nn import functional as F

from reference_models import MODELS, make_model, save_program

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "golden"))
from order import MASK, EpochOrder, stream_key  # noqa: E402

DROPOUT = 2  # StreamKind
AUTOCAST = {"bf16": torch.bfloat16, "fp16": torch.float16}  # train.precision
LOSS_SCALE = numpy.float32(65536)  # train.loss_scale; no gradient of a test overflows
TRAIN, VAL = 44, 16  # samples; the last batch of an epoch is short


def write_images(directory, shape, classes):
    """Writes images of classes; the image of a class is its picture under noise."""
    generator = torch.Generator().manual_seed(7)
    pictures = torch.rand(classes, *shape, generator=generator)
    for split, count in (("train", TRAIN), ("val", VAL)):
        labels = torch.randint(classes, (count,), generator=generator)
        noise = torch.rand(count, *shape, generator=generator)
        pixels = (pictures[labels] * 0.5 + noise * 0.5) * 255
        numpy.save(directory / f"{split}_images.npy", pixels.to(torch.uint8).numpy())
        numpy.save(directory / f"{split}_labels.npy", labels.numpy())


def write_tokens(directory, length, vocabulary):
    """Writes tokens, each of which mostly determines the next."""
    generator = torch.Generator().manual_seed(7)
    for split, count in (("train", TRAIN), ("val", VAL)):
        jumps = torch.randint(vocabulary, (count * length + 1,), generator=generator)
        steps = torch.where(jumps % 4 == 0, jumps, 3)
        numpy.save(directory / f"{split}.npy", (steps.cumsum(0) % vocabulary).numpy().astype("<u2"))


def make(name, directory):
    directory.mkdir()
    of = MODELS[name]
    # At most 32 x 32 pixels: convolutions cost the most.
    shape = of.shape if of.is_text() else (of.shape[0], *(min(n, 32) for n in of.shape[1:]))
    model = make_model(name)
    save_program(model, shape, directory / "train.pt2")
    if of.has_eval:
        save_program(model.eval(), shape, directory / "eval.pt2")
    data = directory / "data"
    data.mkdir()
    if of.is_text():
        write_tokens(data, *shape, of.outputs)
    else:
        write_images(data, shape, of.outputs)
    return {"lr": of.lr, "model": {"block": shape[0], "vocab": of.outputs} if of.is_text() else {}}


def samples(name, data, split, facts):
    """Inputs and labels as the model gets them."""
    if MODELS[name].is_text():
        length = MODELS[name].shape[0]
        tokens = torch.from_numpy(numpy.load(data / f"{split}.npy").astype(numpy.int64))
        return tokens[:-1].view(-1, length), tokens[1:].view(-1, length)
    pixels = numpy.load(data / f"{split}_images.npy").astype(numpy.float32) / numpy.float32(255)
    mean, std = (numpy.float32(facts["normalize"][k]).reshape(-1, 1, 1) for k in ("mean", "std"))
    labels = numpy.load(data / f"{split}_labels.npy")
    return torch.from_numpy((pixels - mean) / std), torch.from_numpy(labels)


def autocast(precision):
    return torch.autocast("cpu", AUTOCAST.get(precision), precision in AUTOCAST)


class Eager:
    """Trains as a user of PyTorch would, one slot of the batch after another. If one slot holds the
    batch, the loss and the step of SGD round as Lockstep's do, so all bits can be equal."""

    def __init__(self, name, job):
        self.model = make_model(name)
        self.seed, self.slots, self.lr = job["seed"], job["train"]["slots"], job["optimizer"]["lr"]
        self.precision = job["train"].get("precision", "fp32")
        self.statistics = [b for b in self.model.buffers() if b.is_floating_point()]

    def step(self, step, x, labels):
        """The loss of a batch. Statistics become the mean of the slots' statistics."""
        scale = LOSS_SCALE if self.precision == "fp16" else 1
        before = [b.clone() for b in self.statistics]
        after = [torch.zeros_like(b) for b in self.statistics]
        self.model.zero_grad()
        total, parts = 0.0, [p for p in slots_of(len(x), self.slots) if p.start < p.stop]
        for slot, part in enumerate(parts):
            key = stream_key(DROPOUT, self.seed, step, slot)
            torch.manual_seed((key ^ key >> 32) & 0xFFFFFFFF)
            for b, value in zip(self.statistics, before):
                b.copy_(value)
            with autocast(self.precision):
                logits = self.model(x[part])
            logits = logits.flatten(0, -2).float()
            if self.slots == 1:
                loss, gradient = rounded_loss(logits.detach().numpy(), labels.flatten().numpy())
                logits.backward(torch.from_numpy(gradient * scale))
            else:
                value = F.cross_entropy(logits, labels[part].flatten(), reduction="sum")
                (value * float(scale) / labels.numel()).backward()
                loss = value.item() / labels.numel()
            total += loss
            for sum_, b in zip(after, self.statistics):
                sum_ += b
        with torch.no_grad():
            for b, sum_ in zip(self.statistics, after):
                b.copy_(sum_ / len(parts))
            for p in self.model.parameters():
                if p.grad is not None:
                    p -= p.grad / float(scale) * self.lr
        return float(numpy.float32(total))


def exp_below_zero(x):
    f = numpy.float32
    shifted = x * f(1.44269504) + f(12582912)
    n = shifted - f(12582912)
    r = (x - n * f(0.693359375)) - n * f(-2.12194440e-4)
    p = f(1) / f(5040)
    for term in (f(1) / f(720), f(1) / f(120), f(1) / f(24), f(1) / f(6), f(0.5), f(1), f(1)):
        p = p * r + term
    power = (shifted.view(numpy.uint32) + numpy.uint32(127)) << numpy.uint32(23)
    return numpy.where(x < f(-87), f(0), p * power.view(f))


def rounded_loss(logits, labels):
    """Mean cross entropy and its gradient, rounded as in worker/engine/loss.cc: exp() is a
    polynomial, and 16 sums run side by side. For at most 1024 classes."""
    rows, classes = logits.shape
    largest = logits.max(1, keepdims=True)
    exponentials = exp_below_zero(logits - largest)
    lanes = numpy.zeros((rows, 16), numpy.float32)
    for begin in range(0, classes, 16):
        part = exponentials[:, begin:begin + 16]
        lanes[:, :part.shape[1]] += part
    for half in (8, 4, 2, 1):
        lanes[:, :half] += lanes[:, half:2 * half]
    totals = lanes[:, 0].astype(numpy.float64)
    scale = numpy.float32(1) / numpy.float32(rows)
    gradient = exponentials * (numpy.float64(scale) / totals).astype(numpy.float32)[:, None]
    row = numpy.arange(rows)
    gradient[row, labels] -= scale
    below = logits[row, labels].astype(numpy.float64) - largest[:, 0].astype(numpy.float64)
    losses = [numpy.float32(math.log(total) - b) for total, b in zip(totals, below)]
    return sum(map(float, losses)) / rows, gradient


def slots_of(count, slots):
    return [slice(count * s // slots, count * (s + 1) // slots) for s in range(slots)]


def batches(job, fingerprint, count):
    """Yields each step with its samples, without end."""
    digest = xxhash.xxh3_128_intdigest(fingerprint.encode())
    step, batch, epoch = 0, job["train"]["global_batch"], 0
    while True:
        order = EpochOrder(job["seed"], epoch, (digest & MASK, digest >> 64), count)
        for begin in range(0, count, batch):
            yield step, [order.at(i) for i in range(begin, min(begin + batch, count))]
            step += 1
        epoch += 1


def loss_and_logits(module, x, labels):
    with torch.no_grad():
        logits = module(x)
    return F.cross_entropy(logits.flatten(0, -2).float(), labels.flatten()).item(), logits


def check(name, directory, job, exported):
    facts = json.loads((exported / "lockstep.json").read_text())
    job = json.loads(job.read_text())
    x, labels = samples(name, directory / "data", "train", facts)
    eager = Eager(name, job)
    losses = []
    for step, chosen in batches(job, facts["data"]["train_fingerprint"], len(x)):
        if step == facts["step"]:
            break
        losses.append(eager.step(step, x[chosen], labels[chosen]))
    evaluation = samples(name, directory / "data", "val", facts)
    opened = torch.export.load(exported / "model.pt2").module()
    opened_loss, logits = loss_and_logits(opened, *evaluation)
    # The trained weights in the library's own model, by their names.
    library = make_model(name)
    trained = torch.export.load(exported / "train.pt2").state_dict
    library.load_state_dict(trained, strict=True)
    _, wanted = loss_and_logits(library.eval(), *evaluation)
    with autocast(eager.precision):  # as Lockstep evaluates
        library_loss, _ = loss_and_logits(library, *evaluation)
    eagers = eager.model.state_dict()
    return {"losses": losses, "opened_loss": opened_loss, "library_loss": library_loss,
            "logits_differ": ((logits - wanted).abs().max() / wanted.abs().max()).item(),
            "other_bits": [n for n, t in trained.items() if not torch.equal(t, eagers[n])]}


def main(command, directory, *words):
    directory = pathlib.Path(directory)
    if command == "make":
        return {name: make(name, directory / name) for name in words}
    return [check(name, directory / name, *map(pathlib.Path, paths))
            for name, *paths in zip(words[::3], words[1::3], words[2::3])]


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    print(json.dumps(main(*sys.argv[1:])))
