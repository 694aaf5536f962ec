// A DeviceCollective over loopback that is as late as it may be: nothing is summed before a caller
// waits for it, so a sum that is used too early shows as other bits.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "comm/collectives/device_collective.h"
#include "comm/collectives/forwarding.h"
#include "comm/collectives/operations_hash.h"
#include "comm/collectives/sum_slice.h"

namespace lockstep::testing {

class LateCollective final : public Forwarding<DeviceCollective, Collective> {
 public:
  // `on_enqueued`, after each all_reduce(); `before_sums`, before what was enqueued is summed, as a
  // device first does what its lane holds. Both may be empty.
  explicit LateCollective(std::unique_ptr<Collective> of, std::function<void()> on_enqueued = {},
                          std::function<void()> before_sums = {})
      : Forwarding(std::move(of)),
        on_enqueued_(std::move(on_enqueued)),
        before_sums_(std::move(before_sums)) {}

  Status begin_step(const Tag& tag, const StepMerge& merge) override {
    late_.clear();  // of a step that ended early
    operations_.begin_step(hash_of(merge));
    return inner().begin_step(tag, merge);
  }
  Status all_reduce(const Tag& tag, const ElementRange& range) override {
    late_.emplace_back(tag, range);
    operations_.add(tag, range);
    if (on_enqueued_) on_enqueued_();
    return Status::ok();
  }
  Result<uint64_t> wait_for_sums() override {
    if (before_sums_) before_sums_();
    for (const auto& [tag, range] : std::exchange(late_, {}))
      LOCKSTEP_RETURN_IF_ERROR(inner().all_reduce(tag, range));
    return operations_.value();
  }
  void check_next_sum(uint32_t) override {}
  std::optional<uint64_t> checked_sum() const override { return std::nullopt; }

 private:
  const std::function<void()> on_enqueued_;
  const std::function<void()> before_sums_;
  std::vector<std::pair<Tag, ElementRange>> late_;
  OperationsHash operations_;
};

}  // namespace lockstep::testing
