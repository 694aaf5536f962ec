// A small boundary state with memory of its own, and a directory that goes away.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "comm/run/checkpoint/safetensors.h"
#include "comm/run/checkpoint/store.h"

namespace lockstep {

// Reads a checkpoint into `state`, as a worker does that resumes.
inline Result<CheckpointInfo> load_checkpoint(const std::string& path,
                                              std::span<const StateTensor> state) {
  LOCKSTEP_ASSIGN_OR_RETURN(LoadedState loaded, read_checkpoint(path));
  const Status fits = install_tensors(loaded.state.tensors(), state);
  if (!fits.is_ok()) return fits.with_context(path);
  return std::move(loaded.info);
}

}  // namespace lockstep

namespace lockstep::testing {

class TestState {
 public:
  void add(StateSection section, std::string name, DType dtype, std::vector<int64_t> shape) {
    const size_t bytes = *tensor_bytes(dtype, shape);
    memory_.emplace_back(bytes);
    tensors_.push_back(
        {section, std::move(name), dtype, std::move(shape), memory_.back().data(), bytes});
  }

  // Different numbers fill with different bytes.
  void fill(unsigned number) {
    for (auto& block : memory_)
      for (size_t i = 0; i < block.size(); ++i)
        block[i] = static_cast<std::byte>((number * 31 + i * 7) & 0x3f);
  }

  std::vector<StateTensor>& tensors() { return tensors_; }

  static TestState small(unsigned number) {
    TestState state;
    state.add(StateSection::kParameter, "fc.weight", DType::kF32, {3, 5});
    state.add(StateSection::kParameter, "fc.bias", DType::kF32, {3});
    state.add(StateSection::kBuffer, "bn.batches", DType::kI64, {});
    state.add(StateSection::kBuffer, "a.mask", DType::kU8, {3});
    state.add(StateSection::kOptimizer, "exp_avg.fc.weight", DType::kF32, {3, 5});
    state.fill(number);
    return state;
  }

 private:
  std::vector<StateTensor> tensors_;
  std::vector<std::vector<std::byte>> memory_;
};

inline Manifest manifest_of(Step step) {
  Manifest manifest;
  manifest.resume = {step, Phase::kTrain};
  manifest.generation = 1;
  manifest.member = 1;
  manifest.seed = 7;
  manifest.slots = 4;
  manifest.global_batch = 128;
  manifest.schedule.set_name("onecycle");
  manifest.schedule.set_max_lr(0.1);
  manifest.dataset_fingerprint = "0123";
  manifest.numerics_fingerprint = {"device=cpu", "threads=1"};
  manifest.lineage = {"lineage-1", 0, "run-1", "", 0};
  return manifest;
}

}  // namespace lockstep::testing
