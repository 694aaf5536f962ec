// The SHA-256 that shows whether two runs ended with the same weights, bit for bit.
//
// THE HASHED BYTES, exactly:
//
//   weights := "lockstep weights 1\n" tensor*     parameters and buffers together
//   state   := weights "optimizer 1\n" tensor*    with all = true
//   tensor  := le64(bytes of name) name           in ascending byte order of names
//              le64(bytes of dtype) dtype         safetensors name: "F32", "I64", "BOOL"
//              le64(dimensions) le64(dim)*
//              le64(bytes) bytes                  row-major, little-endian
//
// le64 is an unsigned 64-bit little-endian integer. Tied tensors occur once, under the name that
// the engine gives them.
//
// Thread-safety: a WeightsHasher belongs to one thread; weights_hash() has no state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "comm/base/hash.h"
#include "comm/run/checkpoint/state_tensor.h"

namespace lockstep {

// 64 lower-case hex digits. The order of `state` does not matter. Optimizer tensors count only if
// `all`. REQUIRES: names are unique among parameters and buffers, and among optimizer tensors; the
// tensors' bytes do not change meanwhile.
std::string weights_hash(std::span<const StateTensor> state, bool all);

// Both hashes of a state. The one of the weights is a prefix of the other, so each byte is hashed
// once.
struct WeightsHashes {
  std::string weights;  // weights_hash(state, false)
  std::string state;    // weights_hash(state, true)
};
WeightsHashes weights_hashes(std::span<const StateTensor> state);

// Hashes the same grammar piece by piece, for tensors that are not in memory at once.
class WeightsHasher {
 public:
  WeightsHasher();
  void begin_optimizer();
  // Then `bytes` bytes through data(). Tensors come in ascending byte order of names.
  void begin_tensor(std::string_view name, DType dtype, std::span<const int64_t> shape,
                    uint64_t bytes);
  void data(std::span<const std::byte> bytes) { hash_.update(bytes.data(), bytes.size()); }
  std::string so_far() const;
  std::string finish();  // call once

 private:
  Sha256 hash_;
};

}  // namespace lockstep
