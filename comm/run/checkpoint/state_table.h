// The list of a state's tensors, as bytes. The receiver of a state allocates from it.
// Little-endian:
//
//   table  := le32(number of tensors) tensor*
//   tensor := le16(bytes of name) name  u8 section  u8 dtype  u8 dimensions  le64(dim)*
//
// section: 0 parameter, 1 buffer, 2 optimizer; dtype: the number in DType.
//
// INVARIANTS of a parsed table, whatever the bytes were
//  B1 Names are unique among parameters and buffers, and among the optimizer's tensors, and not
//     empty; at most kTensors tensors of at most kTensorDims dimensions.
//  B2 Every tensor has a size in bytes, and so have all together.
//  B3 The bytes are those that state_table() makes of it.
//
// Thread-safety: pure functions and values.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "comm/base/status.h"
#include "comm/run/checkpoint/state_tensor.h"

namespace lockstep {

struct StateTable {
  std::vector<StateTensor> tensors;  // without data
  uint64_t bytes = 0;                // of all tensors
};

// kUsage if the state is over the limits.
Result<std::string> state_table(std::span<const StateTensor> state);

// kBadData for anything else than a table, with the name of the tensor or its number.
Result<StateTable> parse_state_table(std::string_view bytes);

}  // namespace lockstep
