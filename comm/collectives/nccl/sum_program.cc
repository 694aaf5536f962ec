#include "comm/collectives/nccl/sum_program.h"

#include <algorithm>
#include <string>

#include "comm/base/check.h"
#include "comm/collectives/reduction_tree.h"

namespace lockstep::nccl {
namespace {

// Whether `ops` begins with the balanced tree of leaves [first, first + leaves); cuts it off.
bool cut_balanced(std::span<const int32_t>* ops, int32_t first, int32_t leaves) {
  if (ops->empty()) return false;
  if (leaves > 1 && !(cut_balanced(ops, first, leaves / 2) &&
                      cut_balanced(ops, first + leaves / 2, leaves / 2))) {
    return false;
  }
  if (ops->empty() || ops->front() != (leaves == 1 ? first : SumProgram::kAdd)) return false;
  *ops = ops->subspan(1);
  return true;
}

}  // namespace

uint32_t balanced_leaves(std::span<const int32_t> ops) {
  for (const int32_t leaves : {2, 4, 8}) {
    std::span<const int32_t> rest = ops;
    if (cut_balanced(&rest, 0, leaves) && rest.empty()) return static_cast<uint32_t>(leaves);
  }
  return 0;
}

Status make_device_sum(std::span<const int32_t> ops, std::span<const float* const> leaves,
                       float* out, uint64_t elements, DeviceSum* sum) {
  if (leaves.size() > limits::kDeviceLeaves) {
    return {Code::kConfig,
            std::to_string(leaves.size()) + " partial sums meet on one GPU, over the limit of " +
                std::to_string(limits::kDeviceLeaves) +
                ". Choose train.slots so that each rank owns an aligned run of slots, "
                "or numerics: fast"};
  }
  uint32_t size = 0;
  for (size_t k = 0; k < ops.size(); ++k) {
    sum->ops[k] = static_cast<int16_t>(ops[k]);
    size += ops[k] == SumProgram::kAdd ? -1 : 1;
    LOCKSTEP_CHECK(size >= 1 && size <= kSumDepth, "a sum deeper than the kernel's stack");
  }
  std::copy(leaves.begin(), leaves.end(), sum->leaves);
  sum->op_count = static_cast<uint32_t>(ops.size());
  sum->balanced = balanced_leaves(ops);
  sum->elements = elements;
  sum->out = out;
  return Status::ok();
}

}  // namespace lockstep::nccl
