// Which jobs train.precision fp8 is for (worker/model/adr/0005-fp8-has-a-scale-for-each-tensor.md).
//
// Thread-safety: a pure function.
#pragma once

#include <optional>
#include <string>

#include "comm/run/job/job.pb.h"

namespace lockstep {

// Matrix products in fp8 take sizes in multiples of this.
inline constexpr uint32_t kFp8WidthMultiple = 16;

// A key of a job that fp8 does not go with.
struct Fp8Conflict {
  std::string key;     // "model.name"
  std::string why;     // "is for gpt2: ..."
  std::string advice;  // "set train.precision=bf16"
};

// None if the job is fine, or does not ask for fp8. REQUIRES: the model's size is resolved.
inline std::optional<Fp8Conflict> fp8_conflict(const wire::JobSpec& job) {
  if (job.train().precision() != "fp8") return std::nullopt;
  const wire::ModelSpec& model = job.model();
  if (model.name() != "gpt2")
    return Fp8Conflict{"model.name",
                       "is for gpt2: exported programs, TorchScript and plug-ins bring their own "
                       "operators, and the other built-in models have no layers that would gain",
                       "set train.precision=bf16"};
  if (model.n_embd() % kFp8WidthMultiple != 0) {
    // Heads divide a width, so the next one is a multiple of both.
    uint64_t fits = model.n_embd();
    while (fits % kFp8WidthMultiple != 0 || (model.n_head() > 0 && fits % model.n_head() != 0))
      ++fits;
    return Fp8Conflict{"model.n_embd",
                       "needs a width that is a multiple of " + std::to_string(kFp8WidthMultiple) +
                           ", and model.n_embd is " + std::to_string(model.n_embd()),
                       "set model.n_embd=" + std::to_string(fits) + " or train.precision=bf16"};
  }
  return std::nullopt;
}

}  // namespace lockstep
