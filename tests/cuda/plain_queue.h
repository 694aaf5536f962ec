// A DeviceQueue in plain memory. Enqueued work is done at once, and reported when a test likes.
#pragma once

#include <atomic>
#include <vector>

#include "comm/collectives/nccl/device_queue.h"

namespace lockstep::testing {

class PlainQueue final : public nccl::DeviceQueue {
 public:
  void* stream() override { return nullptr; }
  Status follow_gradients() override { return Status::ok(); }
  Status hold_compute() override { return Status::ok(); }
  Status mark_end() override { return Status::ok(); }
  Result<bool> reached_end() override { return looks_until_end == 0 || --looks_until_end == 0; }
  Status sum(const nccl::DeviceSum& sum) override {
    for (uint64_t i = 0; i < sum.elements; ++i) sum.out[i] = nccl::sum_element(sum, i);
    return Status::ok();
  }
  Result<float*> stage(uint64_t elements) override {
    if (elements > stage_.size()) stage_.resize(elements);
    return stage_.data();
  }
  Status put_tag(uint64_t tag) override {
    sent_[0] = tag;
    sent_[1] = ~tag;
    return Status::ok();
  }
  const uint64_t* tag_sent() const override { return sent_; }
  uint64_t* tag_received() override { return received_; }
  Status check_tag(uint64_t tag, Generation generation) override {
    if (received_[0] != tag || received_[1] != ~tag) differs_ = generation;
    return Status::ok();
  }
  bool tags_differ(Generation generation) const override { return differs_ == generation; }

  uint64_t looks_until_end = 0;  // the number of times that reached_end() says no

 private:
  std::vector<float> stage_;
  uint64_t sent_[nccl::kTagWords] = {};
  uint64_t received_[nccl::kTagWords] = {};
  std::atomic<Generation> differs_ = 0;
};

}  // namespace lockstep::testing
