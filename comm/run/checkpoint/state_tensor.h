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

// The numbers travel in tables of states (state_table.h): new ones come at the end.
enum class DType : uint8_t { kF32, kF64, kI64, kU8, kF16, kBF16, kI32, kI16, kI8, kBool };

inline constexpr DType kDTypes[] = {DType::kF32, DType::kF64,  DType::kI64, DType::kU8,
                                    DType::kF16, DType::kBF16, DType::kI32, DType::kI16,
                                    DType::kI8,  DType::kBool};

size_t dtype_bytes(DType dtype);
const char* dtype_safetensors_name(DType dtype);  // "F32", "BF16", "BOOL"

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
