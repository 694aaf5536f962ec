// Chooses the next token from logits: the largest, or a random one of the likeliest.
//
// The number of the token is the counter of the random numbers. So a text depends on the seed and
// the logits only, and the same seed gives the same text.
//
// Thread-safety: immutable; next() keeps no state.
#pragma once

#include <cstdint>
#include <span>

namespace lockstep {

struct SamplingRule {
  double temperature = 1;  // divides the logits; 0: always the largest
  uint32_t top_k = 0;      // only so many of the likeliest tokens; 0: all
  double top_p = 1;        // only the fewest likeliest tokens that together have this probability
  uint64_t seed = 0;
};

// Token number `index` of the text. Never a token whose logit is minus infinity. On a tie the lower
// token counts as the likelier one. REQUIRES: a logit above minus infinity, none NaN; temperature
// >= 0; 0 < top_p <= 1.
uint32_t next_token(std::span<const float> logits, const SamplingRule& rule, uint64_t index);

}  // namespace lockstep
