#include "comm/collectives/sum_slice.h"

#include <algorithm>
#include <vector>

#include "comm/base/prng.h"

namespace lockstep {
namespace {

// Sums `part` of `slice`. The slice's first element goes to `out`.
void sum(const SumProgram& program, const ElementRange& part, const ElementRange& slice,
         const LeafAt& leaf_at, float* out) {
  if (part.size() == 0) return;
  std::vector<const float*> leaves;
  leaves.reserve(program.leaves.size());
  for (const Leaf& leaf : program.leaves) {
    leaves.push_back(leaf_at(leaf) + (part.begin - slice.begin));
  }
  evaluate_sum(program, leaves, out + (part.begin - slice.begin), part.size());
}

}  // namespace

void sum_slice(const StepMerge& merge, uint64_t control, const ElementRange& slice,
               const LeafAt& leaf_at, float* out) {
  const uint64_t middle = std::clamp(control, slice.begin, slice.end);
  sum(merge.gradients, {slice.begin, middle}, slice, leaf_at, out);
  sum(merge.control, {middle, slice.end}, slice, leaf_at, out);
}

uint64_t hash_of(const StepMerge& merge) {
  uint64_t hash = 0;
  for (const SumProgram* program : {&merge.gradients, &merge.control}) {
    for (const Leaf& leaf : program->leaves) hash = stream_key({hash, leaf.rank, leaf.region});
    for (const int32_t op : program->ops) hash = stream_key({hash, static_cast<uint64_t>(op)});
  }
  return hash;
}

}  // namespace lockstep
