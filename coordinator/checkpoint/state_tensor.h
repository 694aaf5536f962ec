// A view of one tensor of the boundary state, without Torch, for checkpoints, hashes and transfers.
// Bytes are in logical row-major order, whatever the memory format of the model.
//
// The engine owns the memory, and views are valid while it lives. Read and write their content only
// between two steps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace lockstep {

enum class DType : uint8_t { kF32, kF64, kI64, kU8 };

size_t dtype_bytes(DType dtype);
const char* dtype_safetensors_name(DType dtype);  // "F32", "F64", "I64", "U8"

enum class StateSection : uint8_t { kParameter, kBuffer, kOptimizer };

struct StateTensor {
  StateSection section = StateSection::kParameter;
  std::string name;  // PyTorch's, e.g. "conv1.weight"; optimizer: "exp_avg.conv1.weight"
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;
  std::byte* data = nullptr;
  size_t bytes = 0;  // product of shape times dtype_bytes
};

}  // namespace lockstep
