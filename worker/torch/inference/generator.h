// Continues tokens by a GPT-2. When the block is full, it starts over from the last half of a
// block: the model knows no position beyond.
//
// Errors: LibTorch's exceptions pass through. kBadData if the weights give a logit that is no
// number.
// Thread-safety: one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "comm/base/status.h"
#include "worker/inference/token_sampler.h"
#include "worker/torch/inference/gpt2_session.h"

namespace lockstep {

class Generator {
 public:
  // Both outlive it. `may_be`: whether a token may be chosen, by number.
  Generator(Gpt2Session& session, std::vector<bool> may_be, const SamplingRule& rule)
      : session_(session), may_be_(std::move(may_be)), rule_(rule) {}

  // Reads a prompt, or its last block if it is longer than one block. REQUIRES: not empty.
  void begin(std::span<const int64_t> prompt);
  // The next token of the text.
  Result<uint32_t> next();

 private:
  Gpt2Session& session_;
  const std::vector<bool> may_be_;
  const SamplingRule rule_;
  std::vector<int64_t> text_;    // the last block of it
  std::vector<int64_t> unread_;  // by the session
  uint64_t index_ = 0;
};

}  // namespace lockstep
