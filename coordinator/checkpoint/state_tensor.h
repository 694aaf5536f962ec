// A view of one tensor of the boundary state, without Torch: what checkpoints, hashes and transfers
// work on. Bytes are in logical row-major order, whatever the memory format of the model.
//
// The memory belongs to the engine; views stay valid as long as it lives, and their content may be
// read or written between two steps only.
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
