// A GPT-2 that reads a text token by token and remembers it: each block keeps the keys and values
// of the tokens read so far, so a token costs one row of every layer, and not the whole text again.
//
// The parts and the arithmetic are as in worker/torch/model/gpt2.cc in evaluation mode. Sums of
// another shape have other last bits, so logits agree to about 1e-5.
//
// Errors: LibTorch's exceptions pass through.
// Thread-safety: one thread.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

#include "comm/run/job/job.pb.h"
#include "worker/model/gpt2_parts.h"
#include "worker/torch/model/kernel_layers.h"

namespace lockstep {

class Gpt2Session {
 public:
  // `parameters`: by index of `parts.layout`. Reserves keys and values of model.block tokens.
  // REQUIRES: parts = make_gpt2_parts(spec, ...).
  Gpt2Session(const wire::ModelSpec& spec, Gpt2Parts parts, std::vector<at::Tensor> parameters);

  int64_t block() const { return block_; }
  int64_t length() const { return length_; }  // tokens read so far
  void forget() { length_ = 0; }

  // Reads further tokens. Returns the logits (vocab) of the token that follows the last one.
  // REQUIRES: there are tokens, all below vocab, and length() stays within block().
  at::Tensor read(std::span<const int64_t> tokens);

 private:
  struct Kept {  // of a block: (1, heads, model.block, n_embd / heads)
    at::Tensor keys;
    at::Tensor values;
  };
  at::Tensor attention(const Forward& f, const at::Tensor& x, const Gpt2Block& block, Kept& kept,
                       const at::Tensor& mask) const;

  const int64_t heads_;
  const int64_t block_;
  const Gpt2Parts parts_;
  const std::vector<at::Tensor> parameters_;
  std::vector<Kept> kept_;
  int64_t length_ = 0;
};

}  // namespace lockstep
