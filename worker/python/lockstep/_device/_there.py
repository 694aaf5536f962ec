"""Tensors over memory of a device that the core has: made by DLPack, which every device of torch's takes
alike."""
from __future__ import annotations

import ctypes

import torch

# DLDeviceType of DLPack 0.8. Any device of torch's own making is an "extension".
_CUDA, _EXTENSION = 2, 12
_FLOAT = 2  # DLDataTypeCode


class _Tensor(ctypes.Structure):
    """DLTensor, and the two words of DLManagedTensor behind it, which nothing has to free."""

    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32),
                ("device_id", ctypes.c_int32), ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8),
                ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64),
                ("manager_ctx", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.restype = ctypes.py_object
_new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


def floats_there(place: torch.device, address: int, floats: int) -> torch.Tensor:
    """A view of memory of `place`, which the core keeps until it is closed. What describes the view
    stays for ever: torch looks at it when it frees the tensor, which may be as the process ends."""
    shape = (ctypes.c_int64 * 1)(floats)
    kind = _CUDA if place.type == "cuda" else _EXTENSION
    tensor = _Tensor(address, kind, place.index or 0, 1, _FLOAT, 32, 1, shape, None, 0, None, None)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object((tensor, shape)))  # a few in a run
    return torch.from_dlpack(_new_capsule(ctypes.addressof(tensor), b"dltensor", None))
