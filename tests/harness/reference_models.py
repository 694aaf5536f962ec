"""Models of PyTorch, torchvision and transformers, for Pythons that have these libraries:
$(deploy/install_deps.sh --print-models-python)."""
import pathlib
import sys
import typing

import torch
from torch import nn
from torch.export import Dim, export, save
from torch.nn import functional as F

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "golden/exported"))
import models as golden  # noqa: E402

CLASSES, VOCABULARY = 10, 128


class Mlp(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Flatten(), nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 128),
                         nn.ReLU(), nn.Linear(128, CLASSES))


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        block = lambda i, o: nn.Sequential(nn.Conv2d(i, o, 3, padding=1), nn.ReLU(),
                                           nn.Conv2d(o, o, 3, padding=1), nn.ReLU())
        self.a, self.b, self.c = block(3, 16), block(16, 32), block(32, 64)
        self.up2, self.up1 = nn.ConvTranspose2d(64, 32, 2, 2), nn.ConvTranspose2d(32, 16, 2, 2)
        self.d, self.e, self.out = block(64, 32), block(32, 16), nn.Conv2d(16, CLASSES, 1)

    def forward(self, x):
        a = self.a(x)
        b = self.b(F.max_pool2d(a, 2))
        y = self.d(torch.cat([b, self.up2(self.c(F.max_pool2d(b, 2)))], 1))
        return self.out(self.e(torch.cat([a, self.up1(y)], 1))).mean((2, 3))


class Logits(nn.Module):
    """A model of transformers that gives its logits alone."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids):
        return self.model(input_ids=input_ids).logits


def vision(name, **options):
    import torchvision
    return getattr(torchvision.models, name)(num_classes=CLASSES, **options)


def gpt2():
    from transformers import GPT2Config, GPT2LMHeadModel
    return Logits(GPT2LMHeadModel(GPT2Config(vocab_size=VOCABULARY, n_positions=64, n_embd=32,
                                             n_layer=2, n_head=2, use_cache=False)))


def bert():
    from transformers import BertConfig, BertForMaskedLM
    return Logits(BertForMaskedLM(BertConfig(vocab_size=VOCABULARY, hidden_size=32,
                                             intermediate_size=64, num_hidden_layers=2,
                                             num_attention_heads=2, max_position_embeddings=64)))


class Reference(typing.NamedTuple):
    make: typing.Callable
    shape: tuple  # of a sample: (channels, height, width), or (tokens,)
    batch: int  # of benchmarks
    lr: float
    has_eval: bool = False  # evaluation is a program of its own
    outputs: int = CLASSES

    def is_text(self):
        return len(self.shape) == 1


MODELS = {
    "mlp": Reference(Mlp, (1, 28, 28), 64, 0.05),
    "tied_lm": Reference(golden.TiedLm, (golden.LENGTH,), 8, 0.05, outputs=golden.TOKENS),
    "vit": Reference(golden.Vit, (1, 8, 8), 8, 0.05),
    "unet": Reference(UNet, (3, 32, 32), 4, 0.05),
    "resnet18": Reference(lambda: vision("resnet18"), (3, 64, 64), 8, 0.01),
    "resnet50": Reference(lambda: vision("resnet50"), (3, 64, 64), 4, 0.001),
    "vit_b_16": Reference(lambda: vision("vit_b_16", image_size=32), (3, 32, 32), 2, 0.001),
    "mobilenet_v3_small": Reference(lambda: vision("mobilenet_v3_small"), (3, 64, 64), 8, 0.01),
    "convnext_tiny": Reference(lambda: vision("convnext_tiny"), (3, 64, 64), 2, 0.001, True),
    "gpt2": Reference(gpt2, (32,), 4, 0.05, outputs=VOCABULARY),
    "bert": Reference(bert, (32,), 4, 0.05, outputs=VOCABULARY),
}


def make_model(name):
    """The model in training mode, with the weights of the seed."""
    torch.manual_seed(1)
    return MODELS[name].make().train()


def save_program(model, shape, path):
    x = torch.zeros(2, *shape, dtype=torch.long if len(shape) == 1 else torch.float)
    program = export(model, (x,), dynamic_shapes=({0: Dim("batch", min=1, max=1024)},))
    save(program, path)
