"""A device of torch's that needs no GPU, for the tests of scripts: "standin".

torch loads it by itself where this folder is among Python's modules (the entry point in
lockstep_stand_in-0.dist-info), and $LOCKSTEP_STAND_IN_LIBRARY names its library. It is as nasty as a
GPU: whoever reads its memory on the host dies, and copies that are not waited for come late (memory.h).
"""
import os
import types

NAME = "standin"


class _Generator:
    """The device's. torch.manual_seed() does not reach it."""

    def manual_seed(self, seed):
        import torch

        torch.ops.lockstep_stand_in.seed(seed)


class _Driver:
    def cudaHostRegister(self, address, size, _flags):
        import torch

        torch.ops.lockstep_stand_in.pin(address, size)
        return 0


def _let_parameters_stay(torch):
    """One that moves stays the same object, as on CUDA: else tied ones would come apart."""
    apply, future = torch.nn.Module._apply, torch.__future__

    def swapping(module, *args, **named):
        before = future.get_swap_module_params_on_conversion()
        future.set_swap_module_params_on_conversion(True)
        try:
            return apply(module, *args, **named)
        finally:
            future.set_swap_module_params_on_conversion(before)

    torch.nn.Module._apply = swapping


def load():
    """torch's entry point for backends."""
    import torch

    torch.ops.load_library(os.environ["LOCKSTEP_STAND_IN_LIBRARY"])
    torch.utils.rename_privateuse1_backend(NAME)
    module = types.ModuleType(f"torch.{NAME}")
    module.is_available = lambda: True
    module.is_initialized = lambda: True
    module.device_count = lambda: 1
    module.current_device = lambda: 0
    module.set_device = lambda _device: None
    module.synchronize = lambda _device=None: torch.ops.lockstep_stand_in.synchronize()
    module.manual_seed_all = lambda _seed: None
    module._is_in_bad_fork = lambda: False
    module.get_amp_supported_dtype = lambda: [torch.bfloat16, torch.float16]
    module.default_generators = (_Generator(),)
    module.cudart = _Driver
    _let_parameters_stay(torch)
    torch._register_device_module(NAME, module)
    torch.utils.generate_methods_for_privateuse1_backend()
