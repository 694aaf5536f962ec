// The parts of a GPT-2 (Radford et al. 2019, "Language Models are Unsupervised Multitask
// Learners"): learned positions, blocks with a LayerNorm in front of each half, and an output layer
// that shares the token embedding. Names and order are as in the PyTorch model in
// tests/golden/gpt2.py. Linear weights are (out, in).
//
// Initial values are also as in tests/golden/gpt2.py: normal with deviation 0.02; in the last
// layer of each half of a block 0.02 / sqrt(2 n_layer); biases 0; norms 1.
//
// Thread-safety: values and pure functions. Does not need Torch.
#pragma once

#include <cstdint>
#include <vector>

#include "comm/run/job/models/gpt2_spec.h"
#include "worker/model/spec.h"

namespace lockstep {

struct Gpt2Block {  // indices of weights; the bias is the next parameter
  uint32_t norm1 = 0;
  uint32_t qkv = 0;       // (3 n_embd, n_embd)
  uint32_t attended = 0;  // (n_embd, n_embd)
  uint32_t norm2 = 0;
  uint32_t wide = 0;    // (4 n_embd, n_embd)
  uint32_t narrow = 0;  // (n_embd, 4 n_embd)
};

struct Gpt2Parts {
  ModelLayout layout;
  uint32_t tokens = 0;     // (vocab, n_embd); also the output's weight
  uint32_t positions = 0;  // (block, n_embd)
  std::vector<Gpt2Block> blocks;
  uint32_t norm = 0;
};

// REQUIRES: check_gpt2(spec) is OK.
Gpt2Parts make_gpt2_parts(const wire::ModelSpec& spec, uint32_t vocab);

}  // namespace lockstep
