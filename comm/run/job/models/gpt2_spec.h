// The settings of a GPT-2, and its row in the table of models.
//
// Sizes, all with 64 values a head: d4 256 wide, d6 384, d8 512, d12 768 (124 million parameters
// with GPT-2's vocabulary), d24 1024, d36 1280, d48 1600; the last four are GPT-2's own.
//
// Thread-safety: pure functions.
#pragma once

#include <string_view>

#include "comm/base/status.h"
#include "comm/run/job/job.pb.h"
#include "comm/run/job/models/model_row.h"

namespace lockstep {

inline constexpr std::string_view kGpt2Sizes[] = {"d4", "d6", "d8", "d12", "d24", "d36", "d48"};

// Sets n_layer, n_head, n_embd and block where they are 0, from the size; an empty size is d12.
// REQUIRES: the size is empty or one of kGpt2Sizes.
void resolve_gpt2(wire::ModelSpec* spec);

// kUsage when the heads do not divide the width, or when a value is 0 or beyond limits.h.
Status check_gpt2(const wire::ModelSpec& spec);

// Floating-point operations that forward and backward make for one sample: 6 for
// each weight of a matrix and token, and 12 for each layer, channel and pair of tokens in attention
// (Chowdhery et al., PaLM, 2022, appendix B). Not counted: what is computed twice. REQUIRES: the
// spec is resolved.
double gpt2_flops_per_sample(const wire::ModelSpec& spec);

inline constexpr ModelKey kGpt2Keys[] = {
    {"dropout", "of the embedding, and of what each half of a block adds"},
    {"size"},
    {"n_layer"},
    {"n_head"},
    {"n_embd"},
    {"recompute"}};

inline constexpr ModelRow kGpt2Row = {.name = "gpt2",
                                      .about = "a decoder-only transformer, for tokens",
                                      .elsewhere = {"gpt", "gpt-2", "nanogpt", "transformer"},
                                      .keys = kGpt2Keys,
                                      .takes = ModelTakes::kTokens,
                                      .tells_documents_apart = true,
                                      .resolve = resolve_gpt2,
                                      .check = check_gpt2,
                                      .flops_per_sample = gpt2_flops_per_sample};

}  // namespace lockstep
