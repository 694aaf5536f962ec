"""Finds models that no exported program can replace, by looking at the module before it runs."""
from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn.modules import module as torch_module

from .._errors import Misuse

_REMOVE = "which torch.export drops: the program would train without it; remove the hook"


def check_model(model: Any) -> None:
    """Raises Misuse."""
    _check_kind(model)
    _check_hooks(model)
    _check_parameters(model)


def _check_kind(model: Any) -> None:
    if isinstance(model, torch.jit.ScriptModule):
        raise Misuse("the model is a TorchScript module; save it with torch.jit.save() and set "
                     "model.name: torchscript")
    if not isinstance(model, nn.Module):
        raise Misuse(f"the model is a {type(model).__name__}, and not a torch.nn.Module; put the "
                     f"function into the forward of a module")
    for name, module in model.named_modules():
        where = f"the module {name}" if name else "the model"
        if hasattr(module, "_orig_mod"):
            raise Misuse(f"{where} comes from torch.compile(); export what was given to "
                         f"torch.compile()")
        if type(module).__module__.startswith(("torch.nn.parallel", "torch.distributed")):
            raise Misuse(f"{where} is a {type(module).__name__}; export the module in it, "
                         f"model.module")


def _check_hooks(model: nn.Module) -> None:
    for name, parameter in model.named_parameters():
        if parameter._backward_hooks or parameter._post_accumulate_grad_hooks:  # noqa: SLF001
            raise Misuse(f"the parameter {name} has a hook, {_REMOVE}")
    for name, module in model.named_modules():
        if module._backward_hooks or module._backward_pre_hooks:  # noqa: SLF001
            raise Misuse(f"the module {name or type(model).__name__} has a backward hook, {_REMOVE}")
    if torch_module._global_backward_hooks or torch_module._global_backward_pre_hooks:  # noqa: SLF001
        raise Misuse(f"register_module_full_backward_hook() has set a backward hook for all modules, "
                     f"{_REMOVE}")


def _check_parameters(model: nn.Module) -> None:
    parameters = dict(model.named_parameters())
    for name, parameter in parameters.items():
        if isinstance(parameter, nn.parameter.UninitializedParameter):
            raise Misuse(f"the parameter {name} has no shape yet; call the model once with the "
                         f"example before the export")
        if parameter.is_meta:
            raise Misuse(f"the parameter {name} has no values (device meta); load the weights before "
                         f"the export")
        if parameter.dtype != torch.float32:
            raise Misuse(f"the parameter {name} is {str(parameter.dtype).removeprefix('torch.')}, and "
                         f"Lockstep trains float32; export model.float(), and set train.precision")
    if not any(parameter.requires_grad for parameter in parameters.values()):
        raise Misuse(f"no parameter of {type(model).__name__} requires a gradient, so there is "
                     f"nothing to train; call requires_grad_(True) on those that are to be trained")


def trained(model: nn.Module) -> dict[str, nn.Parameter]:
    """The trained parameters, by their first names."""
    return {name: parameter for name, parameter in model.named_parameters()
            if parameter.requires_grad}
