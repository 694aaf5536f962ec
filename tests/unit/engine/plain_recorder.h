// CUDA graphs without a device: recording runs the work, writes down every call of the PlainModule
// and every operator of LibTorch with its numbers and the device's addresses, and takes all of it
// back; a replay runs the work again and fails the test where it is not the same to the letter. So
// a value of the host that a graph would have frozen shows, as well as work that is only done while
// recording.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/unit/engine/plain_module.h"
#include "worker/cuda/torch_queue.h"

namespace lockstep::testing {

class PlainRecorder final : public TorchQueue {
 public:
  explicit PlainRecorder(PlainModule& module) : module_(module) {}

  Status make_current() override {
    ++made_current;
    return Status::ok();
  }
  Status empty_cache() override;
  const VarlenAttention* varlen_attention() const override { return varlen; }
  int64_t refused_allocations() const override { return is_short ? ++refused_ : refused_; }
  bool records() const override { return true; }
  Result<std::unique_ptr<Recording>> record(const std::function<Status()>& body) override;

  const VarlenAttention* varlen = nullptr;
  bool is_short = false;  // every look finds that one more request was refused
  uint32_t made_current = 0;
  uint32_t recordings = 0;
  uint32_t replays = 0;
  // From now on a recording fails when all of it has been recorded.
  bool fails = false;
  // From now on one throws in the middle of backward, when the first bucket is complete.
  bool throws = false;
  std::vector<std::string> first;  // what the first recording wrote down

 private:
  class Kept;
  std::vector<std::string> run(const std::function<Status()>& body, Status* status);

  PlainModule& module_;
  mutable int64_t refused_ = 0;
};

// Given to the module, which keeps it.
PlainRecorder& add_recorder(PlainModule& module);

}  // namespace lockstep::testing
