// The additions of reduction_tree.h. They work element by element, so the bits do not depend on
// vector width, tile size or alignment. (The sum of two NaNs may have the payload of either; it is
// NaN all the same.)
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "comm/base/check.h"
#include "comm/base/target_clones.h"
#include "comm/collectives/reduction_tree.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace lockstep {
namespace {

// The tiles of all values on the stack together stay well inside a 32 KiB first-level cache.
constexpr uint64_t kTileElements = 1024;

// out may be a or b.
LOCKSTEP_CLONES
void add_tile(float* out, const float* a, const float* b, uint64_t n) {
  for (uint64_t i = 0; i < n; ++i) out[i] = a[i] + b[i];
}

// A sum of this size or more does not fit into the caches. It is written past them, which saves
// reading every line of the result before overwriting it (a quarter of the memory traffic).
constexpr uint64_t kStreamElements = uint64_t{2} * 1024 * 1024;

#if defined(__SSE2__)
// REQUIRES: out 16-byte aligned.
void add_tile_streaming(float* out, const float* a, const float* b, uint64_t n) {
  uint64_t i = 0;
  for (; i + 4 <= n; i += 4) {
    _mm_stream_ps(out + i, _mm_add_ps(_mm_loadu_ps(a + i), _mm_loadu_ps(b + i)));
  }
  for (; i < n; ++i) out[i] = a[i] + b[i];
  _mm_sfence();  // streaming stores are not ordered with the flag that publishes them
}
#else
void add_tile_streaming(float* out, const float* a, const float* b, uint64_t n) {
  add_tile(out, a, b, n);
}
#endif

// Whether the final addition of a sum goes past the caches.
bool is_worth_streaming(const float* out, std::span<const float* const> leaves, uint64_t n) {
  return n >= kStreamElements && reinterpret_cast<uintptr_t>(out) % 16 == 0 && out != leaves[0];
}

// A value on the stack: a leaf in its place, or the scratch tile of this stack place.
class TileStack {
 public:
  explicit TileStack(uint32_t depth) : scratch_(depth * kTileElements), values_(depth) {}

  void push(const float* leaf) { values_[size_++] = leaf; }

  // Replaces the two topmost values by their sum.
  void add(uint64_t n) {
    --size_;
    float* sum = &scratch_[(size_ - 1) * kTileElements];
    add_tile(sum, values_[size_ - 1], values_[size_], n);
    values_[size_ - 1] = sum;
  }

  // The last addition of the tile: the sum of the only two values goes to `out`.
  void finish(uint64_t n, float* out, bool stream) {
    (stream ? add_tile_streaming : add_tile)(out, values_[0], values_[1], n);
    size_ = 0;
  }

 private:
  std::vector<float> scratch_;
  std::vector<const float*> values_;
  size_t size_ = 0;
};

}  // namespace

void evaluate_sum(const SumProgram& program, std::span<const float* const> leaves, float* out,
                  uint64_t n) {
  LOCKSTEP_CHECK(leaves.size() == program.leaves.size(), "one pointer per leaf");
  if (program.ops.empty()) {
    std::memset(out, 0, n * sizeof(float));
    return;
  }
  if (program.leaves.size() == 1) {
    if (out != leaves[0]) std::memcpy(out, leaves[0], n * sizeof(float));
    return;
  }
  const bool stream = is_worth_streaming(out, leaves, n);
  if (program.leaves.size() == 2) {
    (stream ? add_tile_streaming : add_tile)(out, leaves[0], leaves[1], n);
    return;
  }
  TileStack stack(program.depth);
  for (uint64_t begin = 0; begin < n; begin += kTileElements) {
    const uint64_t count = std::min(kTileElements, n - begin);
    for (size_t i = 0; i + 1 < program.ops.size(); ++i) {
      const int32_t op = program.ops[i];
      if (op == SumProgram::kAdd)
        stack.add(count);
      else
        stack.push(leaves[op] + begin);
    }
    stack.finish(count, out + begin, stream);
  }
}

void add_into(float* dst, const float* src, uint64_t n) {
  add_tile(dst, dst, src, n);
}

}  // namespace lockstep
