#!/usr/bin/env python3
r"""The loop of torchvision's reference for classification: transforms, mixup, label smoothing, an average
of the weights, a cosine after a warm-up, and the accuracy of both sets of weights after every epoch.

    lockstep run images.py --workers 2 -- --data-path /usr/share/datasets/fashion-mnist
    python images.py --data-path /usr/share/datasets/fashion-mnist

Both give the same weights. The path has train/CLASS/FILE and val/CLASS/FILE, or Fashion-MNIST's files.
Without one the script draws shapes. As on ImageNet:

    lockstep run images.py --workers 8 train.global_batch=1024 train.slots=32 train.epochs=90 -- \
        --data-path imagenet --model resnet50 --size 224 --lr 0.5 --warmup-epochs 5 --epochs 90

13 lines are not plain PyTorch: the block, and those that name lockstep or `run`.
"""
# /// lockstep
# job: images
# train: {global_batch: 128, slots: 4, epochs: 5}
# ///
import argparse
import pathlib

import lockstep
import torch
import torchvision
from pictures import fashion, shapes
from torch.nn import functional as F
from torch.optim.lr_scheduler import CosineAnnealingLR, LinearLR, SequentialLR
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from torch.utils.data import DataLoader, default_collate
from torchvision.transforms import v2


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--data-path", type=pathlib.Path)
    parser.add_argument("--samples", type=int, default=6000, help="of Fashion-MNIST, or shapes, to train on")
    parser.add_argument("--model", default="shufflenet_v2_x0_5", help="one of torchvision's")
    parser.add_argument("--size", type=int, default=32, help="pixels of a side")
    parser.add_argument("--lr", type=float, default=0.02, help="after the warm-up")
    parser.add_argument("--momentum", type=float, default=0.9)
    parser.add_argument("--weight-decay", type=float, default=2e-5)
    parser.add_argument("--label-smoothing", type=float, default=0.1)
    parser.add_argument("--mixup-alpha", type=float, default=0.2)
    parser.add_argument("--auto-augment", action="store_true", help="TrivialAugmentWide")
    parser.add_argument("--random-erase", type=float, default=0.1)
    parser.add_argument("--warmup-epochs", type=int, default=1)
    parser.add_argument("--epochs", type=int, default=5,
                        help="where the cosine ends; training ends at train.epochs")
    parser.add_argument("--ema-decay", type=float, default=0.95, help="of the average, at each step")
    parser.add_argument("--data-processes", type=int, default=1, help="they read ahead")
    return parser.parse_args()


class Pictures(torch.utils.data.Dataset):
    def __init__(self, images, labels, transform):
        self.images, self.labels, self.transform = images, labels, transform

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return self.transform(self.images[index].expand(3, -1, -1)), self.labels[index]


def transforms(args):
    """For training, and for evaluation."""
    last = [v2.ToDtype(torch.float32, scale=True), v2.Normalize((0.5,) * 3, (0.25,) * 3)]
    policy = [v2.TrivialAugmentWide()] if args.auto_augment else []
    train = [v2.RandomResizedCrop(args.size, scale=(0.5, 1.0), antialias=True), v2.RandomHorizontalFlip(),
             *policy, *last, v2.RandomErasing(args.random_erase)]
    val = [v2.Resize(args.size * 8 // 7, antialias=True), v2.CenterCrop(args.size), *last]
    return v2.Compose([v2.ToImage(), *train]), v2.Compose([v2.ToImage(), *val])


def datasets(args):
    train, val = transforms(args)
    if args.data_path and (args.data_path / "train").is_dir():
        folder = torchvision.datasets.ImageFolder
        train, val = folder(args.data_path / "train", train), folder(args.data_path / "val", val)
        return train, val, len(train.classes)
    parts = [fashion(args.data_path, part) for part in ("train", "t10k")] if args.data_path else \
        [shapes(args.samples, 1), shapes(args.samples // 6, 2)]
    (images, labels), (val_images, val_labels) = parts
    return (Pictures(images[:args.samples], labels[:args.samples], train),
            Pictures(val_images, val_labels, val), int(labels.max()) + 1)


def right(logits, labels, top=1):
    """How many labels are among the `top` best."""
    best = logits.topk(min(top, logits.shape[1])).indices
    return (best == labels[:, None]).sum()


def main():
    args = arguments()
    train, val, classes = datasets(args)
    mixup = v2.MixUp(alpha=args.mixup_alpha, num_classes=classes)
    loader = DataLoader(train, 32, shuffle=True, num_workers=args.data_processes,
                        collate_fn=lambda samples: mixup(*default_collate(samples)))
    run = lockstep.start()
    model = torchvision.models.get_model(args.model, num_classes=classes)
    ema = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(args.ema_decay), use_buffers=True)
    optimizer = torch.optim.SGD(model.parameters(), args.lr, args.momentum, weight_decay=args.weight_decay)
    scheduler = SequentialLR(optimizer, [
        LinearLR(optimizer, 0.01, total_iters=args.warmup_epochs),
        CosineAnnealingLR(optimizer, args.epochs - args.warmup_epochs)], [args.warmup_epochs])

    def evaluate(batch):
        image, target = batch
        logits = model(image)
        return {"loss": F.cross_entropy(logits, target), "correct": right(logits, target),
                "acc5": right(logits, target, 5) / len(target),
                "ema_acc1": right(ema(image), target) / len(target)}

    run.keep(model=model, ema=ema, optimizer=optimizer, own_scheduler=scheduler,
             after_step=lambda: ema.update_parameters(model))
    run.evaluate(evaluate, val, workers=args.data_processes)
    for epoch in run.epochs():
        for image, target in run.batches(loader):
            logits = model(image)
            loss = F.cross_entropy(logits, target, label_smoothing=args.label_smoothing)
            run.backward(loss, metrics={"acc1": right(logits, target.argmax(1)) / len(target)})
        scheduler.step()
        print(f"epoch {epoch}: accuracy {run.last.evaluation.accuracy:.4f}")


if __name__ == "__main__":
    main()
