#include "comm/collectives/nccl/sum_program.h"

#include <algorithm>
#include <string>

#include "comm/base/check.h"
#include "comm/collectives/reduction_tree.h"

namespace lockstep::nccl {

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
  sum->elements = elements;
  sum->out = out;
  return Status::ok();
}

}  // namespace lockstep::nccl
