"""The form of tensors in a state: in the host's memory, of ten dtypes, in row-major order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional

import torch
from torch import Tensor

from ._errors import MisuseError, StateError

# Safetensors' names, as the C++ side has them (comm/run/checkpoint/state_tensor.h).
DTYPES = {
    torch.float32: "F32", torch.float64: "F64", torch.int64: "I64", torch.uint8: "U8",
    torch.float16: "F16", torch.bfloat16: "BF16", torch.int32: "I32", torch.int16: "I16",
    torch.int8: "I8", torch.bool: "BOOL",
}
MAX_DIMENSIONS = 16


@dataclass(frozen=True)
class Entry:
    """One tensor of the state.

    section: "parameter", "buffer" or "optimizer"; a name occurs once among parameters and buffers,
    and once in the section "optimizer". dtype: safetensors' name, e.g. "BF16".
    tensor: contiguous, on the CPU, without gradient; the live tensor if it already is.
    """

    name: str
    section: str
    dtype: str
    shape: tuple[int, ...]
    tensor: Tensor


def why_not(tensor: Tensor) -> Optional[str]:
    """Why a state cannot hold `tensor`, as words that follow "is"; None: it can."""
    if (type(tensor) in (Tensor, torch.nn.Parameter) and not tensor.is_meta
            and tensor.dtype in DTYPES and tensor.layout is torch.strided and not tensor.is_inference()
            and tensor.dim() <= MAX_DIMENSIONS):
        return None  # nearly all: the rest finds words
    if isinstance(tensor, torch.nn.parameter.UninitializedTensorMixin):
        return "not initialized (a Lazy module); run one batch through the module first"
    if any(base.__name__ == "DTensor" for base in type(tensor).__mro__) or (
            type(tensor).__torch_dispatch__ is not Tensor.__torch_dispatch__):
        return f"a {type(tensor).__name__}, which is no plain tensor; keep the plain module"
    if tensor.layout is not torch.strided:
        return "sparse; use a dense tensor (for an Embedding sparse=False)"
    if tensor.device.type == "meta":
        return "on the device meta and has no values; make it with to_empty() and fill it"
    if tensor.dtype not in DTYPES:
        return f"of the dtype {tensor.dtype}; a state holds " + ", ".join(
            str(d).removeprefix("torch.") for d in DTYPES)
    if tensor.is_inference():
        return "an inference tensor; make it outside of torch.inference_mode()"
    if tensor.dim() > MAX_DIMENSIONS:
        return f"of {tensor.dim()} dimensions; a state holds at most {MAX_DIMENSIONS}"
    return None


def check_kept(tensor: Tensor, name: str) -> None:
    """Raises MisuseError, with the name, for a tensor that a state cannot hold."""
    why = why_not(tensor)
    if why:
        raise MisuseError(f"run.keep() cannot keep `{name}`, which is {why}.")


def entry(name: str, section: str, tensor: Tensor) -> Entry:
    """`tensor` as part of a description."""
    why = why_not(tensor)
    if why:
        what, _, then = why.partition("; ")
        raise StateError(f"`{name}` in the state", f"it is {what}", then or "keep a plain tensor")
    return Entry(name, section, DTYPES[tensor.dtype], tuple(tensor.shape), in_memory(tensor))


def in_memory(tensor: Tensor) -> Tensor:
    """`tensor` for a reader of its memory: row-major, on the CPU, without gradient; itself if it is
    so.

    A view of the imaginary part of a conjugate has the other sign in memory.
    """
    plain = _row_major(tensor)
    return plain if plain.is_cpu else plain.cpu()


def _row_major(tensor: Tensor) -> Tensor:
    plain = tensor.detach() if tensor.requires_grad else tensor
    if plain.is_neg() or not plain.is_contiguous():
        plain = plain.resolve_neg().contiguous()
    return plain


def same_bits(a: Tensor, b: Tensor) -> bool:
    """True also for the same NaN, and false for 0 and -0. The tensors may lie on any device."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if a.device != b.device:
        a, b = in_memory(a), in_memory(b)
    return torch.equal(_row_major(a).view(-1).view(torch.uint8),
                       _row_major(b).view(-1).view(torch.uint8))


Kind = tuple[torch.dtype, torch.Size]


def kind_of(tensor: Tensor) -> Kind:
    """Two tensors that replace each other are of the same kind."""
    return tensor.dtype, tensor.shape


def words_of(kind: Kind) -> str:
    return f"{str(kind[0]).removeprefix('torch.')} {tuple(kind[1])}"


def memory_order(tensor: Tensor) -> Optional[tuple[int, ...]]:
    """The dimensions from the outermost to the innermost in memory, where `tensor` is dense but not
    row-major (channels_last, transposed); else None."""
    if tensor.is_contiguous():
        return None
    sizes, strides = tensor.shape, tensor.stride()
    order = tuple(sorted(range(tensor.dim()), key=lambda d: (-strides[d], d)))
    expected = 1
    for d in reversed(order):
        if sizes[d] != 1 and strides[d] != expected:
            return None
        expected *= sizes[d]
    return order


def copy_in_order(tensor: Tensor, order: Optional[tuple[int, ...]], where: str) -> Tensor:
    """A tensor of its own with the values of `tensor` and the memory order `order`.

    Kernels may round otherwise for another memory order, so an installed tensor has the old one.
    """
    if order is None:
        return tensor.detach().clone(memory_format=torch.contiguous_format)
    if sorted(order) != list(range(tensor.dim())):
        raise StateError(where, f"{order} is no order of {tensor.dim()} dimensions",
                         "the state is damaged, or another version of Lockstep wrote it")
    back = sorted(range(len(order)), key=order.__getitem__)
    return tensor.detach().permute(order).clone(memory_format=torch.contiguous_format).permute(back)


def overlaps_itself(tensor: Tensor) -> bool:
    """True for expanded tensors, into which copy_() cannot write."""
    return any(n > 1 and s == 0 for n, s in zip(tensor.shape, tensor.stride()))


@torch.no_grad()
def refill(tensor: Tensor, values: Tensor) -> None:
    """Copies `values`, of the same shape and dtype, into `tensor`."""
    tensor.copy_(values)
