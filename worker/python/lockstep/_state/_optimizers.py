"""The state of an optimizer as one value, and back.

    {"groups": [{"params": ["fc.weight"], "values": {"lr": 0.001, …}}],
     "state": {"fc.weight": {"exp_avg": tensor, "step": tensor}},
     "others": {}}                              state that belongs to no parameter

Tensors come back by assignment. load_state_dict() would cast fp32 state of bf16 parameters to bf16,
and the next step would have other bits.
"""

from __future__ import annotations

from typing import Any, Optional

import torch
from torch import Tensor
from torch.optim import SGD, Optimizer

from ._errors import MisuseError, StateError

DAMAGED = "the state is damaged, or another version of Lockstep wrote it"
_REFUSED = {
    "LBFGS": "it computes the loss again in each step; use another optimizer",
    "SparseAdam": "its gradients are sparse; use Adam, and Embedding with sparse=False",
    "ZeroRedundancyOptimizer": "it cuts its state into shards; use the optimizer inside",
}


def check_optimizer(name: str, optimizer: Optimizer, names: dict[int, str],
                    stepped_inside: set[int]) -> None:
    """Raises MisuseError for an optimizer that cannot be kept. `names`: parameters by id().
    `stepped_inside`: ids of the optimizers that others may step."""
    for base in type(optimizer).__mro__:
        if base.__name__ in _REFUSED and base.__module__.startswith("torch."):
            raise MisuseError(f"run.keep() cannot keep `{name}`, a {base.__name__}: "
                              f"{_REFUSED[base.__name__]}.")
    for g, group in enumerate(optimizer.param_groups):
        for p, parameter in enumerate(group["params"]):
            if id(parameter) not in names:
                raise MisuseError(
                    f"`{name}` updates a parameter of shape {tuple(parameter.shape)} (group {g}, "
                    f"number {p}) that no kept module has; give its module to run.keep(), too.")
            if (type(optimizer) is SGD and group.get("fused")
                    and parameter.dtype in (torch.bfloat16, torch.float16)):
                # pytorch issue 191763: it skips updates and reads uninitialized memory
                raise MisuseError(f"`{name}` is an SGD with fused=True, which PyTorch computes "
                                  f"wrongly for {parameter.dtype} on the CPU; leave fused out.")
    for attribute, inner in vars(optimizer).items():
        if (isinstance(inner, Optimizer) and inner.state is not optimizer.state
                and id(inner) not in stepped_inside):
            raise MisuseError(f"run.keep() cannot keep `{name}`, a {type(optimizer).__name__} with "
                              f"another optimizer in `{attribute}`, whose state would be lost; keep "
                              "that one, and do what is done around it in run.keep(update=…).")
    if type(optimizer).state_dict is not Optimizer.state_dict:
        more = sorted(set(optimizer.state_dict()) - {"state", "param_groups"}, key=str)
        if more:
            raise MisuseError(f"run.keep() cannot keep `{name}`, a {type(optimizer).__name__}, "
                              f"which keeps {more[0]!r} beside its state and groups; keep the "
                              "optimizer inside, and the rest as an object of its own.")


def value_of(optimizer: Optimizer, name: str, prefix: str, names: dict[int, str],
             preferred: dict[int, str]) -> dict[str, Any]:
    """The state of `optimizer`, tensors included.

    Notes in `preferred`, by id(), the names of its tensors: `prefix`, then "exp_avg.fc.weight".
    Parameters without state and with an empty one are the same, as for optimizers.
    """
    state: dict[str, dict[str, Any]] = {}
    others: dict[Any, Any] = {}
    for key, value in optimizer.state.items():
        if not isinstance(key, Tensor):
            others[key] = value
            continue
        parameter = names.get(id(key))
        if parameter is None:
            raise StateError(f"{name}.state", "it belongs to a parameter that no kept module has",
                             "give the module to run.keep(), too")
        if value:
            state[parameter] = value
    memory: dict[int, Tensor] = {}
    for parameter, values in sorted(state.items()):
        for key in sorted(values, key=str):
            if isinstance(values[key], Tensor):
                tensor_name = f"{prefix}{key}.{parameter}"
                _check_own(values[key], tensor_name, memory)
                preferred.setdefault(id(values[key]), tensor_name)
    groups = [
        {"params": [names[id(p)] for p in group["params"]],
         "values": {k: v for k, v in group.items() if k != "params"}}
        for group in optimizer.param_groups
    ]
    return {"groups": groups, "state": state, "others": others}


def _check_own(tensor: Tensor, name: str, memory: dict[int, Tensor]) -> None:
    """Raises StateError if two tensors are views of one memory: install() would separate them."""
    if tensor.layout is torch.strided and tensor.numel():
        first = memory.setdefault(tensor.untyped_storage().data_ptr(), tensor)
        if first is not tensor:
            raise StateError(f"`{name}` in the state", "it shares its memory with another tensor "
                             "of the optimizer", "use an optimizer with a tensor a parameter")


def check_value(name: str, optimizer: Optimizer, value: Any, names: dict[int, str]) -> None:
    """Raises StateError if `value`, from another process, does not fit `optimizer`."""
    if type(value) is not dict or set(value) != {"groups", "state", "others"}:
        raise StateError(name, "the state has no optimizer of this name", DAMAGED)
    groups, state = value["groups"], value["state"]
    if type(groups) is not list or type(state) is not dict or type(value["others"]) is not dict:
        raise StateError(name, "the optimizer's state has no groups", DAMAGED)
    if len(groups) != len(optimizer.param_groups):
        raise StateError(name, f"the state has {len(groups)} groups of parameters, the script "
                         f"{len(optimizer.param_groups)}", "make the groups that the run had")
    for g, (group, ours) in enumerate(zip(groups, optimizer.param_groups)):
        if (type(group) is not dict or set(group) != {"params", "values"}
                or type(group["values"]) is not dict or "params" in group["values"]):
            raise StateError(f"{name}.param_groups[{g}]", "it is no group", DAMAGED)
        expected = [names[id(p)] for p in ours["params"]]
        if group["params"] != expected:
            raise StateError(f"{name}.param_groups[{g}]", difference(group["params"], expected),
                             "make the groups that the run had")
    known = {names[id(p)] for group in optimizer.param_groups for p in group["params"]}
    for parameter, values in state.items():
        if parameter not in known or type(values) is not dict:
            raise StateError(f"{name}.state", f"`{parameter!s:.80}` is no parameter of this "
                             "optimizer", "make the groups that the run had")


def difference(theirs: Any, ours: list[str]) -> str:
    """The first difference of two lists of names, in words."""
    if type(theirs) is not list:
        return "the state has no list of parameters"
    for a, b in zip(theirs, ours):
        if a != b:
            return f"the state has `{a!s:.80}` where the script has `{b}`"
    return f"the state has {len(theirs)} parameters, the script {len(ours)}"


def put_value(optimizer: Optimizer, value: dict[str, Any], names: dict[int, str]) -> None:
    """Restores `optimizer` from a value that check_value() let pass.

    Values of groups that the state lacks, because a newer torch added them, stay as they are.
    """
    optimizer.state.clear()
    for group, saved in zip(optimizer.param_groups, value["groups"]):
        for parameter in group["params"]:
            values = value["state"].get(names[id(parameter)])
            if values:
                optimizer.state[parameter] = dict(values)
        group.update(saved["values"])
    for key, other in value["others"].items():
        optimizer.state[key] = other


def settings(optimizer: Optimizer) -> list[tuple[int, str, Any]]:
    """Each group's values, for comparing: (group, "lr", 0.1)."""
    found = []
    for g, group in enumerate(optimizer.param_groups):
        for key, value in group.items():
            if key in ("params", "param_names"):
                continue
            if isinstance(value, Tensor):
                value = float(value) if value.numel() == 1 else None
            found.append((g, key, value))
    return found


def changed(before: list[tuple[int, str, Any]], now: list[tuple[int, str, Any]]) -> Optional[str]:
    """The first setting that has changed; None: none has."""
    for (g, key, a), (other_g, other, b) in zip(before, now):
        if (g, key) != (other_g, other) or (a is not b and repr(a) != repr(b)):
            return f"param_groups[{other_g}][{other!r}]"
    return None if len(before) == len(now) else "param_groups"
