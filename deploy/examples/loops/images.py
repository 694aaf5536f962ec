#!/usr/bin/env python3
"""A classifier of pictures: Fashion-MNIST, or shapes that the script draws. Pictures that no step
has seen are classified behind the loop.

    lockstep run images.py --workers 2 -- --data /usr/share/datasets/fashion-mnist
    python images.py --data /usr/share/datasets/fashion-mnist

Both give the same weights. 10 lines are not plain PyTorch: the block, and those that name lockstep
or `run`.
"""
# /// lockstep
# job: images
# train: {global_batch: 128, slots: 4, epochs: 3}
# checkpoint: {every_steps: 50}
# ///
import argparse
import gzip
import pathlib

import lockstep
import torch
from torch import nn
from torch.nn import functional as F
from torch.optim.lr_scheduler import MultiStepLR


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--data", type=pathlib.Path,
                        help="a directory with Fashion-MNIST's files (.gz or not)")
    parser.add_argument("--samples", type=int, default=6000, help="pictures that train")
    parser.add_argument("--unseen", type=int, default=1000, help="pictures that do not")
    parser.add_argument("--model", default="small",
                        help="small, or a model of torchvision such as resnet18")
    parser.add_argument("--lr", type=float, default=0.05)
    parser.add_argument("--momentum", type=float, default=0.9)
    parser.add_argument("--decay", type=float, default=5e-4, help="weight decay")
    parser.add_argument("--milestones", type=int, nargs="*", default=(90, 120),
                        help="steps after which the learning rate falls to a tenth")
    parser.add_argument("--smoothing", type=float, default=0.1, help="of labels")
    parser.add_argument("--data-processes", type=int, default=1, help="they read ahead")
    return parser.parse_args()


def file_of(directory, name, header):
    """The bytes behind the header of an IDX file."""
    path = directory / name
    content = path.read_bytes() if path.exists() else gzip.open(f"{path}.gz").read()
    return torch.frombuffer(bytearray(content[header:]), dtype=torch.uint8)


def fashion(directory, part):
    return (file_of(directory, f"{part}-images-idx3-ubyte", 16).view(-1, 1, 28, 28),
            file_of(directory, f"{part}-labels-idx1-ubyte", 8).long())


def shapes(count, seed):
    """Discs, squares, rings and bars (classes 0 to 3), somewhere in noise."""
    draw = torch.Generator().manual_seed(seed)
    labels = torch.randint(4, (count,), generator=draw)
    y, x, size = (torch.rand(3, count, 1, 1, generator=draw) * 8 + 10 - 6 *
                  torch.tensor([0.0, 0.0, 1.0])[:, None, None, None])
    down, right = torch.arange(28.)[:, None] - y, torch.arange(28.) - x
    far, wide = (down ** 2 + right ** 2).sqrt(), torch.maximum(down.abs(), right.abs())
    kinds = torch.stack([far < size, wide < size, (far < size) & (far > size - 2.5),
                         (wide < size) & (down.abs() < 2)], 1)
    noise = torch.randint(128, (count, 28, 28), generator=draw)
    images = kinds[torch.arange(count), labels] * 100 + noise
    return images.to(torch.uint8)[:, None], labels


class Pictures(torch.utils.data.Dataset):
    """Of three channels. `varies`: moved by up to two pixels and mirrored, in another way in every
    epoch: the draws are seeded by Lockstep."""

    def __init__(self, images, labels, varies):
        self.images, self.labels, self.varies = images, labels, varies

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        image = self.images[index].expand(3, -1, -1).float() / 127.5 - 1
        if self.varies:
            height, width = image.shape[1:]
            top, left, mirrored = (int(torch.randint(n, ())) for n in (5, 5, 2))
            image = F.pad(image, (2, 2, 2, 2), value=-1.0)
            image = image[:, top:top + height, left:left + width]
            image = image.flip(2) if mirrored else image
        return image, self.labels[index]


def small(classes):
    def block(inputs, outputs):
        return nn.Sequential(nn.Conv2d(inputs, outputs, 3, padding=1, bias=False),
                             nn.BatchNorm2d(outputs), nn.ReLU(), nn.MaxPool2d(2))

    return nn.Sequential(block(3, 16), block(16, 32), block(32, 64), nn.AdaptiveAvgPool2d(1),
                         nn.Flatten(), nn.Dropout(0.1), nn.Linear(64, classes))


def model_of(name, classes):
    if name == "small":
        return small(classes)
    try:
        import torchvision
    except ImportError:
        raise SystemExit(f"--model {name} needs torchvision; install it, or take --model small")
    return torchvision.models.get_model(name, num_classes=classes)


@torch.no_grad()
def accuracy_on(model, data):
    model.eval()
    right = sum((model(x).argmax(1) == y).sum().item()
                for x, y in torch.utils.data.DataLoader(data, 256))
    return right / len(data)


def main():
    args = arguments()
    if args.data:
        (images, labels), unseen = fashion(args.data, "train"), fashion(args.data, "t10k")
    else:
        (images, labels), unseen = shapes(args.samples, 1), shapes(args.unseen, 2)
    data = Pictures(images[:args.samples], labels[:args.samples], varies=True)
    unseen = Pictures(unseen[0][:args.unseen], unseen[1][:args.unseen], varies=False)
    run = lockstep.start()
    model = model_of(args.model, int(labels.max()) + 1)
    optimizer = torch.optim.SGD(model.parameters(), args.lr, args.momentum, nesterov=True,
                                weight_decay=args.decay)
    scheduler = MultiStepLR(optimizer, args.milestones)
    run.keep(model=model, optimizer=optimizer, scheduler=scheduler)
    for x, y in run.batches(data, workers=args.data_processes):
        logits = model(x)
        loss = F.cross_entropy(logits, y, label_smoothing=args.smoothing)
        right = (logits.argmax(1) == y).float().mean()
        run.backward(loss, metrics={"accuracy": right})
    print(f"accuracy {accuracy_on(model, unseen):.4f} on {len(unseen)} unseen pictures")


if __name__ == "__main__":
    main()
