// Names what a job computes on a GPU in slow ways, and what to set instead.
//
// Thread-safety: pure functions.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "comm/run/job/job.pb.h"

namespace lockstep {

// Notes for a job that runs on a GPU, a sentence each. `job` is resolved.
inline std::vector<std::string> gpu_notes(const wire::JobSpec& job) {
  constexpr uint64_t kKept = 3;  // matrices of scores that LibTorch's plain attention keeps
  const wire::ModelSpec& model = job.model();
  if (model.name() != "gpt2") return {};
  const std::string& precision = job.train().precision();
  if (precision == "fp16")
    return {
        "gpt2 in fp16 has no kernels of Lockstep's: LibTorch's operators compute its layers, "
        "and logits take four bytes; train.precision=bf16 is faster (in a new run)"};
  const bool is_fp32 = precision.empty() || precision == "fp32";
  if (!is_fp32 || job.comm().numerics() == "fast") return {};
  const uint64_t slots = std::max(1U, job.train().slots());
  const uint64_t samples = (job.train().global_batch() + slots - 1) / slots;
  const uint64_t scores = samples * model.n_head() * model.block() * model.block() * sizeof(float);
  return {
      "gpt2 in fp32 with exact numerics has no fast attention on a GPU: LibTorch multiplies "
      "without tensor cores, and keeps scores of " +
      std::to_string(kKept * model.n_layer() * scores >> 20) + " MiB in a slot of " +
      std::to_string(samples) + " sequences; train.precision=bf16 keeps none (in a new run)"};
}

}  // namespace lockstep
