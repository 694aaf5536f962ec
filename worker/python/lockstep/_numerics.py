"""The settings that decide the bits of a script's process, as lines "key=value" (the lines of the
C++ engine are in worker/torch/engine/numerics_fingerprint.cc). With comm.numerics exact, workers
whose lines differ do not train together."""
from __future__ import annotations

import functools
import os
import platform
import sys
from typing import TYPE_CHECKING, Any

from ._errors import Misuse

if TYPE_CHECKING:
    from ._device import Device


def prepare(threads: int, is_exact: bool) -> None:
    """Fixes the settings that decide the bits, before the script computes anything."""
    import torch

    torch.set_num_threads(threads)
    try:
        torch.set_num_interop_threads(1)
    except RuntimeError:  # it was set, or used, before start()
        pass
    if not is_exact:
        return
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.utils.deterministic.fill_uninitialized_memory = False
    _prepare_compiler()


_MOST_SHAPES = 256  # of one function that torch.compile() compiles
_BY_THE_CLOCK = ("max_autotune", "max_autotune_gemm", "max_autotune_pointwise",
                 "coordinate_descent_tuning")


def _prepare_compiler() -> None:
    """Makes torch.compile() compute a slot the same way, whatever it met before: a program for each
    shape, and never the uncompiled function in its place, which rounds otherwise."""
    import torch
    import torch._dynamo.config  # which the first optimizer imports anyway

    dynamo = torch._dynamo.config
    dynamo.automatic_dynamic_shapes = False
    for name, value in (("recompile_limit", _MOST_SHAPES), ("cache_size_limit", _MOST_SHAPES),
                        ("accumulated_recompile_limit", 16 * _MOST_SHAPES),
                        ("accumulated_cache_size_limit", 16 * _MOST_SHAPES),
                        ("fail_on_recompile_limit_hit", True)):
        if hasattr(dynamo, name):  # old and new names
            setattr(dynamo, name, value)
    backend = getattr(torch, "_TorchCompileInductorWrapper", None)
    if backend is not None and hasattr(backend, "get_compiler_config"):
        backend.__call__ = _without_clock(backend.__call__)


def _without_clock(compile_graph: Any) -> Any:
    @functools.wraps(compile_graph)
    def checked(backend: Any, *args: Any) -> Any:
        config = backend.get_compiler_config()
        found = [name for name in _BY_THE_CLOCK if config.get(name) is True]
        if found:
            raise Misuse(f"torch.compile() with {found[0]} (mode=\"max-autotune\" sets it) takes "
                         "kernels that were the fastest when it tried them, so workers would round "
                         "differently; leave it out, or set comm.numerics: fast")
        return compile_graph(backend, *args)

    return checked


def misuse_of_compiler(error: BaseException | None) -> Misuse | None:
    """The compiler's error that follows from these settings, in our words."""
    while error is not None:
        if isinstance(error, Misuse):
            return error
        if type(error).__name__ == "FailOnRecompileLimitHit":
            return Misuse(f"torch.compile() met more than {_MOST_SHAPES} shapes in one function; "
                          "pad the batches to fewer lengths, or give it dynamic=True")
        error = getattr(error, "inner_exception", None) or error.__cause__
    return None


def _build_lines(torch) -> list[str]:
    shown = torch.__config__.show()
    lines = []
    for key, words in (("mkl", "Intel(R) oneAPI Math Kernel Library"), ("onednn", "MKL-DNN")):
        found = [line.strip(" -") for line in shown.splitlines() if words in line]
        lines.append(f"{key}={found[0] if found else 'none'}")
    return lines


def fingerprint(trial: str, device: Device) -> list[str]:
    """The lines, sorted. `trial`: the hash of the trial's results, which shows code, initial
    weights, data and kernels that differ. The script's text is not among them: a user may edit a
    print before a resume."""
    import torch

    numpy = sys.modules.get("numpy")
    cuda = torch.backends.cuda.matmul
    lines = [
        f"torch={torch.__version__} {torch.version.git_version}",
        f"python={sys.version_info.major}.{sys.version_info.minor}",
        f"machine={platform.machine()}",
        f"aten_isa={torch.backends.cpu.get_cpu_capability()}",
        f"numpy={numpy.__version__ if numpy else 'none'}",
        f"threads={torch.get_num_threads()}",
        f"deterministic={torch.are_deterministic_algorithms_enabled()}",
        f"tf32={cuda.allow_tf32}",
        f"matmul={torch.get_float32_matmul_precision()}",
        f"mkl_cbwr={os.environ.get('MKL_CBWR', '')}",
        f"onednn_isa={os.environ.get('ONEDNN_MAX_CPU_ISA', '')}",
        f"trial={trial}",
        *_build_lines(torch),
        *device.lines(),
    ]
    return sorted(lines)
