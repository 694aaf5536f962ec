#include "comm/run/checkpoint/state_tensor.h"

namespace lockstep {

size_t dtype_bytes(DType dtype) {
  switch (dtype) {
    case DType::kF32:
    case DType::kI32:
      return 4;
    case DType::kF64:
    case DType::kI64:
      return 8;
    case DType::kF16:
    case DType::kBF16:
    case DType::kI16:
      return 2;
    case DType::kU8:
    case DType::kI8:
    case DType::kBool:
      return 1;
  }
  return 0;
}

const char* dtype_safetensors_name(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return "F32";
    case DType::kF64:
      return "F64";
    case DType::kI64:
      return "I64";
    case DType::kU8:
      return "U8";
    case DType::kF16:
      return "F16";
    case DType::kBF16:
      return "BF16";
    case DType::kI32:
      return "I32";
    case DType::kI16:
      return "I16";
    case DType::kI8:
      return "I8";
    case DType::kBool:
      return "BOOL";
  }
  return "unknown";
}

}  // namespace lockstep
