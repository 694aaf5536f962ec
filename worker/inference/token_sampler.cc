#include "worker/inference/token_sampler.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "comm/base/prng.h"

namespace lockstep {
namespace {

constexpr uint64_t kSampling = 0x67656e6572617465ULL;  // "generate"

struct Choice {
  double weight = 0;  // exp((logit - the largest) / temperature)
  uint32_t token = 0;
};

bool is_likelier(const Choice& a, const Choice& b) {
  return a.weight != b.weight ? a.weight > b.weight : a.token < b.token;
}

// Uniform in [0, 1).
double chance_of(uint64_t seed, uint64_t index) {
  return static_cast<double>(stream_value(stream_key({kSampling, seed}), index) >> 11) * 0x1p-53;
}

uint32_t largest(std::span<const float> logits) {
  return static_cast<uint32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

}  // namespace

uint32_t next_token(std::span<const float> logits, const SamplingRule& rule, uint64_t index) {
  const uint32_t best = largest(logits);
  if (rule.temperature == 0 || rule.top_k == 1) return best;
  std::vector<Choice> choices;
  choices.reserve(logits.size());
  const auto top = static_cast<double>(logits[best]);
  for (uint32_t token = 0; token < logits.size(); ++token) {
    const double weight = std::exp((static_cast<double>(logits[token]) - top) / rule.temperature);
    if (weight > 0) choices.push_back({weight, token});
  }
  if (rule.top_k > 0 && choices.size() > rule.top_k) {
    const auto end = choices.begin() + static_cast<std::ptrdiff_t>(rule.top_k);
    std::nth_element(choices.begin(), end, choices.end(), is_likelier);
    choices.erase(end, choices.end());
  }
  if (rule.top_k > 0 || rule.top_p < 1) std::sort(choices.begin(), choices.end(), is_likelier);
  double total = 0;
  for (const Choice& choice : choices) total += choice.weight;
  if (rule.top_p < 1) {
    double kept = 0;
    size_t count = 0;
    while (count < choices.size() && kept < rule.top_p * total) kept += choices[count++].weight;
    choices.resize(std::max<size_t>(count, 1));
    total = kept;
  }
  double left = chance_of(rule.seed, index) * total;
  for (const Choice& choice : choices) {
    left -= choice.weight;
    if (left < 0) return choice.token;
  }
  return choices.back().token;  // rounded away
}

}  // namespace lockstep
