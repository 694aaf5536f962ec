"""GPT-2 as a careful user of PyTorch runs it, with scaled_dot_product_attention. Needs only torch,
because a machine with a GPU may have nothing else."""
import pathlib
import sys

from torch import nn

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "golden"))
import gpt2_model  # noqa: E402

SIZES = {"d4": (4, 4, 256), "d6": (6, 6, 384), "d8": (8, 8, 512), "d12": (12, 12, 768)}


class FusedAttention(gpt2_model.Attention):
    def seen(self, q, k, v):
        return nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)


def fused_gpt2(size, block, vocab):
    layers, heads, width = SIZES[size]
    return gpt2_model.Gpt2(layers, heads, width, block, vocab, FusedAttention)
