"""Exports both programs, and refuses models that jobs could not train or would train otherwise."""
from __future__ import annotations

import contextlib
import json
import os
import re
import warnings
from collections.abc import Collection, Sequence
from typing import Any

import torch
from torch import nn

from .._errors import Misuse
from ._compare import compare
from ._eager import check_evaluation, check_training
from ._example import Example
from ._lines import at, line_of_error, line_of_node
from ._model import check_model
from ._watch import Kept

SCHEMA_MAJOR, SCHEMA_MINOR = 8, 17  # the last that read_program.cc knows
_TORCH = "2.11"
_REGIONS = ("wrap_with_autocast", "wrap_with_set_grad_enabled")


def save_programs(model: nn.Module, example: Any, path: str | os.PathLike[str], *,
                  eval_example: Any = None, least_samples: int = 1, most_samples: int = 4096,
                  derivatives: Collection[type] = (), classes: Sequence[str] = (),
                  transforms: Sequence[str] = ()) -> tuple[str, str]:
    names = _names(path)
    _check_torch()
    check_model(model)
    given = Example(model, example, "example")
    given_eval = given if eval_example is None else Example(model, eval_example, "eval_example")
    _check_sizes(least_samples, most_samples, given, given_eval)
    with Kept(model) as kept, torch.enable_grad():
        if not model.training:  # else its modules stay as they are: frozen norms in evaluation
            model.train()
        check_training(model, given, kept, derivatives)
        training = _exported(model, given, least_samples, most_samples, "training")
        kept.put_back()
        _check_program(training)
        compare(model, training, given, _sizes(given, least_samples, most_samples), kept, "training")
        model.eval()
        check_evaluation(model, given_eval, kept)
        evaluation = _eval_program(model, given_eval, least_samples, most_samples)
        kept.put_back()
        _check_program(evaluation)
        _check_draws(evaluation)
        compare(model, evaluation, given_eval, _sizes(given_eval, least_samples, most_samples), kept,
                "evaluation")
        about = _about(model, given, classes, transforms)
    _save({names[0]: training, names[1]: evaluation}, about)
    return names


def _names(path: str | os.PathLike[str]) -> tuple[str, str]:
    whole = os.fspath(path)
    folder = os.path.dirname(whole) or "."
    if not os.path.isdir(folder):
        raise Misuse(f"there is no directory {folder} for {os.path.basename(whole)}; make it first")
    stem = whole.removesuffix(".pt2")
    return f"{stem}.pt2", f"{stem}.eval.pt2"


def _check_torch() -> None:
    try:
        from torch._export.serde.schema import SCHEMA_VERSION
    except ImportError:
        SCHEMA_VERSION = (0, 0)
    major, minor = SCHEMA_VERSION
    if major != SCHEMA_MAJOR or minor > SCHEMA_MINOR:
        raise Misuse(f"torch {torch.__version__} writes programs of export schema {major}.{minor}, and "
                     f"Lockstep reads {SCHEMA_MAJOR}.0 to {SCHEMA_MAJOR}.{SCHEMA_MINOR}; export with "
                     f"torch {_TORCH}")


def _check_sizes(least: int, most: int, *examples: Example) -> None:
    if not 1 <= least < most:
        raise Misuse(f"least_samples is {least} and most_samples {most}; they are the smallest and the "
                     f"largest slot, 1 or more and one less than the other")
    for example in examples:
        if not least <= example.samples <= most:
            raise Misuse(f"{example.what} has {example.samples} samples, and the programs are to take "
                         f"{least} to {most} (least_samples, most_samples)")


def _sizes(example: Example, least: int, most: int) -> list[int]:
    """The example's size, the smallest, and a third, which shows constants of the example."""
    samples = example.samples
    return sorted({samples, least, samples + 1 if samples < most else samples - 1}, reverse=True)


def _eval_program(model: nn.Module, example: Example, least: int, most: int) -> Any:
    """Takes batches from one sample on if that works: an evaluation's last batch may be small."""
    if least > 1:
        with contextlib.suppress(Misuse):
            return _exported(model, example, 1, most, "evaluation")
    return _exported(model, example, least, most, "evaluation")


def _exported(model: nn.Module, example: Example, least: int, most: int, mode: str) -> Any:
    args, kwargs = example.copied(example.samples)
    try:
        with warnings.catch_warnings():
            # About attributes that forward assigns: check_training() has looked at them.
            warnings.filterwarnings("ignore", message=".*assigned during export")
            return torch.export.export(model, args, kwargs,
                                       dynamic_shapes=example.dynamic_shapes(least, most))
    except Exception as error:
        raise Misuse(f"torch.export cannot export the model for {mode}: "
                     f"{_why(error, least, most)}{at(line_of_error(error))}") from error


def _why(error: Exception, least: int = 1, most: int = 0) -> str:
    text = str(error)
    if fixed := re.search(r"specialized it to be a constant \((\d+)\)", text):
        return (f"forward works for {fixed[1]} samples alone; take the size from the batch, as "
                f"x.shape[0] does, and no number")
    if bounds := re.search(r"Suggested fixes:\s*batch = Dim\('batch', (?:min=(\d+))?(?:, )?"
                           r"(?:max=(\d+))?", text):
        words = [f"{name}={value}" for name, value in
                 zip(("least_samples", "most_samples"), bounds.groups(), strict=True)
                 if value and int(value) not in (least, most)]
        return (f"forward has a condition on the number of samples; write it for every number, or "
                f"give {' and '.join(words) or 'another range'}")
    if "Constraints violated" in text or "batch" in text and "not divisible" in text.lower():
        return "forward has a condition on the number of samples; write it for every number"
    if "data-dependent" in text:
        return ("forward has a condition, or a size, that depends on values of tensors; write it with "
                "torch.where() or masks")
    if ".numpy()" in text or "numpy" in type(error).__name__.lower():
        return "forward leaves torch for NumPy; write it with operators of torch"
    first = next((line for line in text.splitlines() if line.strip()), "")
    return f"{type(error).__name__}: {first}"


def _nodes(program: Any) -> list[Any]:
    return [node for module in program.graph_module.modules()
            if isinstance(module, torch.fx.GraphModule) for node in module.graph.nodes]


def _check_program(program: Any) -> None:
    for node in _nodes(program):
        if node.op != "call_function":
            continue
        if isinstance(node.target, torch._ops.HigherOrderOperator):  # noqa: SLF001
            if str(node.target) not in _REGIONS:
                raise Misuse(f"forward calls {node.target}{at(line_of_node(node))}, and Lockstep "
                             f"runs no conditions and loops on data; write it with torch.where() or "
                             f"masks")
        elif (isinstance(node.target, torch._ops.OpOverload)  # noqa: SLF001
              and node.target.namespace != "aten"):
            raise Misuse(f"forward calls {node.target}{at(line_of_node(node))}, and Lockstep runs "
                         f"operators of PyTorch's own library aten alone; write it with these")


def _check_draws(program: Any) -> None:
    for node in _nodes(program):
        if (node.op != "call_function" or not isinstance(node.target, torch._ops.OpOverload)  # noqa: SLF001
                or torch.Tag.nondeterministic_seeded not in node.target.tags):
            continue
        wanted = node.target._schema.arguments  # noqa: SLF001
        given = {argument.name: argument.default_value for argument in wanted
                 if argument.has_default_value()}
        given |= {argument.name: value for argument, value in zip(wanted, node.args)}  # noqa: B905
        given |= node.kwargs
        share = given.get("dropout_p", given.get("dropout", given.get("p")))
        on = given.get("train", given.get("training", True))
        is_dropout = "dropout_p" in given or "dropout" in str(node.target) or "dropout" in given
        if is_dropout and (on is False or share in (None, 0, 0.0)):
            continue
        line = at(line_of_node(node))
        if is_dropout:
            raise Misuse(f"forward has dropout in evaluation too{line}; give it "
                         f"training=self.training, or use nn.Dropout")
        warnings.warn(f"forward draws random numbers in evaluation{line}: a job's evaluation draws "
                      f"others than PyTorch's", stacklevel=4)


def _about(model: nn.Module, example: Example, classes: Sequence[str],
           transforms: Sequence[str]) -> str:
    """lockstep.json in both archives, which `lockstep export model` keeps."""
    for name, words in (("classes", classes), ("transforms", transforms)):
        if isinstance(words, str) or not all(isinstance(word, str) for word in words):
            raise Misuse(f"{name} is not a list of texts: {words!r}")
    return json.dumps({"torch": torch.__version__, "model": f"{type(model).__module__}."
                       f"{type(model).__qualname__}", "inputs": example.inputs(),
                       **({"classes": list(classes)} if classes else {}),
                       **({"transforms": list(transforms)} if transforms else {})})


def _save(programs: dict[str, Any], about: str) -> None:
    """Both or none."""
    halves = {name: f"{name}.{os.getpid()}.tmp.pt2" for name in programs}
    try:
        for name, program in programs.items():
            try:
                torch.export.save(program, halves[name], extra_files={"lockstep.json": about})
            except OSError:
                raise
            except Exception as error:
                raise Misuse(f"torch.export cannot save {os.path.basename(name)}: "
                             f"{_why(error)}") from error
        for name, half in halves.items():
            os.replace(half, name)
    finally:
        for half in halves.values():
            with contextlib.suppress(FileNotFoundError):
                os.remove(half)
