"""What decides the bits of a script's process, as lines "key=value" (the lines of the C++ engine are
in worker/engine/numerics_fingerprint.cc). Workers with other lines do not train together, where
comm.numerics is exact."""
from __future__ import annotations

import os
import platform
import sys


def prepare(threads: int, is_exact: bool) -> None:
    """Sets what the bits depend on, before the script computes anything."""
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
    import torch._dynamo.config  # which the first optimizer imports anyway

    torch._dynamo.config.automatic_dynamic_shapes = False


def _build_lines(torch) -> list[str]:
    shown = torch.__config__.show()
    lines = []
    for key, words in (("mkl", "Intel(R) oneAPI Math Kernel Library"), ("onednn", "MKL-DNN")):
        found = [line.strip(" -") for line in shown.splitlines() if words in line]
        lines.append(f"{key}={found[0] if found else 'none'}")
    return lines


def fingerprint(trial: str) -> list[str]:
    """`trial`: the hash of what the trial computed, which shows code, initial weights, data and
    kernels that differ. The script's text is no part of it: a print may be mended before a resume.
    Sorted."""
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
    ]
    return sorted(lines)
