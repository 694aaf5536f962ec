// A Collective that forwards every call to another one. Derived classes override what they change,
// and implement what `Interface` has beyond Collective.
//
// Thread-safety: as the inner one's.
#pragma once

#include <memory>
#include <utility>

#include "comm/collectives/collective.h"

namespace lockstep {

template <typename Interface, typename Inner = Interface>
class Forwarding : public Interface {
 public:
  explicit Forwarding(std::unique_ptr<Inner> inner) : inner_(std::move(inner)) {}

  uint32_t rank() const override { return inner_->rank(); }
  uint32_t world_size() const override { return inner_->world_size(); }
  Status begin_step(const Tag& tag, const StepMerge& merge) override {
    return inner_->begin_step(tag, merge);
  }
  Status all_reduce(const Tag& tag, const ElementRange& range) override {
    return inner_->all_reduce(tag, range);
  }
  const float* reduced() const override { return inner_->reduced(); }
  void sum_into(float* sums) override { inner_->sum_into(sums); }
  Status broadcast(const Tag& tag, std::span<std::byte> data, uint32_t root) override {
    return inner_->broadcast(tag, data, root);
  }
  Status all_gather(const Tag& tag, std::span<const std::byte> mine,
                    std::span<std::byte> all) override {
    return inner_->all_gather(tag, mine, all);
  }
  Status barrier(const Tag& tag) override { return inner_->barrier(tag); }
  void check_next_sum(uint32_t owner) override { inner_->check_next_sum(owner); }
  std::optional<uint64_t> checked_sum() const override { return inner_->checked_sum(); }
  void abort() noexcept override { inner_->abort(); }
  int64_t broken_rank() const override { return inner_->broken_rank(); }

 protected:
  Inner& inner() { return *inner_; }

 private:
  const std::unique_ptr<Inner> inner_;
};

}  // namespace lockstep
