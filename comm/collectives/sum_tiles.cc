// The additions behind reduction_tree.h. Elementwise, so the bits do not depend on vector width,
// tile size or alignment (of two NaNs either may give its payload; NaN it stays).
#include <algorithm>
#include <cstring>
#include <vector>

#include "comm/base/check.h"
#include "comm/base/clones.h"
#include "comm/collectives/reduction_tree.h"

namespace lockstep {
namespace {

// A tile of every value on the stack together stays well inside a 32 KiB first-level cache.
constexpr uint64_t kTileElements = 1024;

// out may be a or b.
LOCKSTEP_CLONES
void add_tile(float* out, const float* a, const float* b, uint64_t n) {
  for (uint64_t i = 0; i < n; ++i) out[i] = a[i] + b[i];
}

// A value on the stack: a leaf where it lies, or the scratch tile of this stack place.
class TileStack {
 public:
  explicit TileStack(uint32_t depth) : scratch_(depth * kTileElements), values_(depth) {}

  void push(const float* leaf) { values_[size_++] = leaf; }

  // Replaces the two topmost values by their sum, which lies at `out` if given.
  void add(uint64_t n, float* out) {
    --size_;
    float* sum = out != nullptr ? out : &scratch_[(size_ - 1) * kTileElements];
    add_tile(sum, values_[size_ - 1], values_[size_], n);
    values_[size_ - 1] = sum;
  }

  const float* top() const { return values_[size_ - 1]; }
  void clear() { size_ = 0; }

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
  if (program.leaves.size() == 2) {
    add_tile(out, leaves[0], leaves[1], n);
    return;
  }
  TileStack stack(program.depth);
  for (uint64_t begin = 0; begin < n; begin += kTileElements) {
    const uint64_t count = std::min(kTileElements, n - begin);
    stack.clear();
    for (size_t i = 0; i < program.ops.size(); ++i) {
      const int32_t op = program.ops[i];
      if (op == SumProgram::kAdd) {
        stack.add(count, i + 1 == program.ops.size() ? out + begin : nullptr);
      } else {
        stack.push(leaves[op] + begin);
      }
    }
  }
}

void add_into(float* dst, const float* src, uint64_t n) {
  add_tile(dst, dst, src, n);
}

}  // namespace lockstep
