// A DeviceCollective over loopback that is as late as it may be: nothing is summed before somebody
// waits for it, so a sum that is used too early shows as other bits.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "comm/collectives/device_collective.h"

namespace lockstep::testing {

class LateCollective final : public DeviceCollective {
 public:
  explicit LateCollective(std::unique_ptr<Collective> of) : of_(std::move(of)) {}

  uint32_t rank() const override { return of_->rank(); }
  uint32_t world_size() const override { return of_->world_size(); }
  Status begin_step(const Tag& tag, const StepMerge& merge) override {
    late_.clear();  // of a step that ended early
    return of_->begin_step(tag, merge);
  }
  Status all_reduce(const Tag& tag, const ElementRange& range) override {
    late_.emplace_back(tag, range);
    return Status::ok();
  }
  Status wait_for_sums() override {
    for (const auto& [tag, range] : std::exchange(late_, {}))
      LOCKSTEP_RETURN_IF_ERROR(of_->all_reduce(tag, range));
    return Status::ok();
  }
  const float* reduced() const override { return of_->reduced(); }
  Status broadcast(const Tag& tag, std::span<std::byte> data, uint32_t root) override {
    return of_->broadcast(tag, data, root);
  }
  Status all_gather(const Tag& tag, std::span<const std::byte> mine,
                    std::span<std::byte> all) override {
    return of_->all_gather(tag, mine, all);
  }
  Status barrier(const Tag& tag) override { return of_->barrier(tag); }
  void check_next_sum(uint32_t) override {}
  std::optional<uint64_t> checked_sum() const override { return std::nullopt; }
  void abort() noexcept override { of_->abort(); }

 private:
  const std::unique_ptr<Collective> of_;
  std::vector<std::pair<Tag, ElementRange>> late_;
};

}  // namespace lockstep::testing
