"""Chooses the device that a script computes on.

A worker sees the GPU of its place and no other, so it is cuda:0 in every worker: kept values that
name a device have the same bytes everywhere.
"""
from __future__ import annotations

import os
import pathlib
import sys
from typing import Any, Iterable, Mapping

import torch

from .._errors import CONFIG, LockstepError, Misuse

_VISIBLE = "CUDA_VISIBLE_DEVICES"
# Tests set this: torch's device of this name stands in for CUDA's.
_STAND_IN = "LOCKSTEP_STAND_IN_DEVICE"
# With other workspaces cuBLAS may add in another order, and by other libraries with other numbers. The
# compiler would choose kernels by the clock. All are read when they are first used.
_EXACT = {"CUBLAS_WORKSPACE_CONFIG": ":4096:8", "CUBLASLT_WORKSPACE_SIZE": None,
          "NVIDIA_TF32_OVERRIDE": None, "TORCH_BLAS_PREFER_CUBLASLT": None,
          "TORCHINDUCTOR_DETERMINISTIC": "1"}


# A kernel that is loaded at its first launch may wait for every kernel that runs: also for NCCL's,
# which waits for a peer that may wait for this launch. torch takes LAZY where nothing is said.
_LOADED = ("CUDA_MODULE_LOADING", "EAGER")
_MODULE = "liblockstep-cuda.so"
# Tests set this: the library that stands in for the module.
_STAND_IN_MODULE = "LOCKSTEP_STAND_IN_MODULE"


class Device:
    """`place`: as torch names it. `module`: the library by which gradients are summed there; None: the
    host sums them."""

    def __init__(self, place: torch.device, module: str | None = None):
        self.place = place
        self.module = module
        self.is_host = place.type == "cpu"
        self._module: Any = None if self.is_host else torch.get_device_module(place)

    def check_kept(self, trained: Iterable[tuple[str, torch.Tensor]],
                   others: Iterable[tuple[str, torch.Tensor]]) -> None:
        """Raises Misuse unless trained parameters lie here, and the others here or on the CPU."""
        here, host = self.place, torch.device("cpu")
        for name, tensor, places in [*((*pair, (here,)) for pair in trained),
                                     *((*pair, (here, host)) for pair in others)]:
            if tensor.device in places:
                continue
            if self.is_host:
                raise Misuse(f"run.keep() cannot keep `{name}`, which lies on {tensor.device}: the run "
                             "computes on the CPU; set cluster.device: cuda, or leave the model where "
                             "it was made")
            raise Misuse(f"run.keep() cannot keep `{name}`, which lies on {tensor.device}: the run "
                         f"computes on {self.place} (cluster.device); move the model there by "
                         ".to(run.device), before its optimizer is made")

    def prepare(self, is_exact: bool) -> None:
        """Fixes the settings that decide the bits, before the script computes anything."""
        if self.is_host or not is_exact:
            return
        for name, value in _EXACT.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        if (compiler := sys.modules.get("torch._inductor.config")) is not None:
            compiler.deterministic = True
        # On a GPU, refuse an operation that adds in any order, instead of only warning.
        torch.use_deterministic_algorithms(True)
        torch.backends.cudnn.benchmark = False
        torch.backends.cudnn.allow_tf32 = False
        torch.backends.cuda.matmul.allow_tf32 = False
        torch.backends.cuda.enable_mem_efficient_sdp(False)
        torch.backends.cuda.enable_cudnn_sdp(False)

    def lines(self) -> list[str]:
        """The fingerprint's lines about what decides the device's bits."""
        if self.is_host:
            return []
        lines = [f"device={self.place.type}"]
        if self.place.type == "cuda":
            made = torch.cuda.get_device_properties(self.place)
            lines += [f"gpu={made.name} {made.major}.{made.minor} {made.multi_processor_count}",
                      f"cuda={torch.version.cuda}",
                      f"cudnn={torch.backends.cudnn.version()} "
                      f"{torch.backends.cudnn.benchmark} {torch.backends.cudnn.allow_tf32}",
                      f"cublas={os.environ.get('CUBLAS_WORKSPACE_CONFIG', '')}",
                      f"attention={torch.backends.cuda.flash_sdp_enabled()} "
                      f"{torch.backends.cuda.mem_efficient_sdp_enabled()} "
                      f"{torch.backends.cuda.cudnn_sdp_enabled()}"]
        return lines

    def pin(self, address: int, size: int) -> bool:
        """Pins this memory of the host, so that copies from it need no wait. False: they do."""
        runtime = getattr(self._module, "cudart", None)
        return size > 0 and runtime is not None and \
            int(runtime().cudaHostRegister(address, size, 0)) == 0

    def stream(self) -> int:
        """The stream of this thread, as the module of the device takes it (core.h)."""
        if self.place.type == "cuda":
            return torch.cuda.current_stream(self.place).cuda_stream
        return torch.accelerator.current_stream(self.place).stream_id

    def make_room(self) -> None:
        """Gives back what torch keeps of freed memory, for the module to take."""
        empty_cache = getattr(self._module, "empty_cache", None)
        if empty_cache is not None:
            empty_cache()

    def event(self) -> Any:
        return torch.Event(device=self.place)


HOST = Device(torch.device("cpu"))


def open_device(job: Mapping[str, str]) -> Device:
    """The job's device (cluster.device). Call it before anything has used a GPU."""
    if job["device"] != "cuda":
        return HOST
    if stand_in := os.environ.get(_STAND_IN):
        os.environ[_VISIBLE] = job["gpu"]  # as below, where torch knows the GPUs
        return Device(torch.device(stand_in, 0), _module_of(job))
    if not torch.backends.cuda.is_built():
        raise LockstepError(f"cluster.device is cuda, and torch {torch.__version__} was built without "
                            "CUDA; install a torch with CUDA, or take cluster.device: cpu", CONFIG)
    if torch.cuda.is_initialized():
        raise Misuse("start() came after the script had used a GPU; call it first, since it gives each "
                     "worker a GPU of its own")
    os.environ[_VISIBLE] = _name_of_gpu(int(job["gpu"]), job["gpu_uuid"])
    if job["backend"] == "nccl":
        os.environ.setdefault(*_LOADED)
    if torch.cuda.device_count() == 0:
        raise LockstepError(f"cluster.device is cuda, and torch {torch.__version__} finds no GPU it can "
                            "use here; look whether `nvidia-smi` shows one and whether its driver is "
                            f"new enough for CUDA {torch.version.cuda}", CONFIG)
    return Device(torch.device("cuda", 0), _module_of(job))


def _module_of(job: Mapping[str, str]) -> str | None:
    """The library that sums on the device, where comm.backend asks for it."""
    if job["backend"] != "nccl":
        return None
    package = pathlib.Path(__file__).parents[1]
    at = [*filter(None, [os.environ.get(_STAND_IN_MODULE)]), package / _MODULE,
          package.parents[1] / _MODULE]  # in a wheel, and beside the programs of a build
    for path in at:
        if os.path.exists(path):
            return os.fspath(path)
    raise LockstepError(f"comm.backend is nccl, and this Lockstep has no {_MODULE}, which sums on GPUs; "
                        "build Lockstep with the preset gpu, take a wheel that was made with its GPU module, or "
                        "set comm.backend: host", CONFIG)


def _name_of_gpu(number: int, uuid: str) -> str:
    """The GPU as CUDA_VISIBLE_DEVICES takes it. `number`: among the GPUs that this process sees,
    modulo their number. `uuid`: 32 hex digits, of that GPU wherever it is; empty: unknown."""
    given = os.environ.get(_VISIBLE)
    seen = given.split(",") if given else [str(i) for i in range(torch.cuda.device_count())]
    if uuid:
        same = [name for name in seen if name.partition("-")[2].replace("-", "") == uuid]
        cuts = (0, 8, 12, 16, 20, 32)
        return same[0] if same else "GPU-" + "-".join(uuid[a:b] for a, b in zip(cuts, cuts[1:]))
    return seen[number % len(seen)].strip() if seen else ""
