// The SHA-256 that says two runs ended with the same weights, bit for bit.
//
// THE BYTES THAT ARE HASHED, exactly:
//
//   weights := "lockstep weights 1\n" tensor*     parameters and buffers together
//   state   := weights "optimizer 1\n" tensor*    with all = true
//   tensor  := le64(bytes of name) name           in ascending byte order of names
//              le64(bytes of dtype) dtype         safetensors name: "F32", "F64", "I64", "U8"
//              le64(dimensions) le64(dim)*
//              le64(bytes) bytes                  row-major, little-endian
//
// le64 is an unsigned 64-bit little-endian integer. A tensor tied to another is listed once, under
// the name that the engine gives it.
//
// Thread-safety: pure functions; REQUIRES: the tensors' bytes do not change meanwhile.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "comm/base/status.h"
#include "worker/checkpoint/state_tensor.h"

namespace lockstep {

// 64 lower-case hex digits. Order of `state` does not matter. Optimizer tensors count only when
// `all`. REQUIRES: names are unique among parameters and buffers, and among optimizer tensors.
std::string weights_hash(std::span<const StateTensor> state, bool all);

}  // namespace lockstep
