#include "comm/run/job/models/gpt2_spec.h"

#include <iterator>
#include <string>

#include "comm/base/check.h"
#include "comm/base/limits.h"

namespace lockstep {
namespace {

struct Gpt2Size {
  uint32_t layers;
  uint32_t heads;
  uint32_t width;
};
constexpr Gpt2Size kSizes[] = {{4, 4, 256},    {6, 6, 384},    {8, 8, 512},   {12, 12, 768},
                               {24, 16, 1024}, {36, 20, 1280}, {48, 25, 1600}};
constexpr uint32_t kGpt2Block = 1024;
constexpr std::string_view kDefaultSize = "d12";

Status wrong_setting(const std::string& what) {
  return {Code::kUsage, what};
}

}  // namespace

void resolve_gpt2(wire::ModelSpec* spec) {
  if (spec->size().empty()) spec->set_size(std::string(kDefaultSize));
  size_t i = 0;
  while (i < std::size(kGpt2Sizes) && kGpt2Sizes[i] != spec->size()) ++i;
  LOCKSTEP_CHECK(i < std::size(kGpt2Sizes), "a size that is not known");
  if (spec->n_layer() == 0) spec->set_n_layer(kSizes[i].layers);
  if (spec->n_head() == 0) spec->set_n_head(kSizes[i].heads);
  if (spec->n_embd() == 0) spec->set_n_embd(kSizes[i].width);
  if (spec->block() == 0) spec->set_block(kGpt2Block);
}

Status check_gpt2(const wire::ModelSpec& spec) {
  const auto check = [](const char* key, uint64_t value, uint64_t most) {
    if (value > 0 && value <= most) return Status::ok();
    return wrong_setting(std::string(key) + " is " + std::to_string(value) + " but must be 1 to " +
                         std::to_string(most));
  };
  LOCKSTEP_RETURN_IF_ERROR(check("model.n_layer", spec.n_layer(), limits::kModelLayers));
  LOCKSTEP_RETURN_IF_ERROR(check("model.n_head", spec.n_head(), limits::kModelWidth));
  LOCKSTEP_RETURN_IF_ERROR(check("model.n_embd", spec.n_embd(), limits::kModelWidth));
  LOCKSTEP_RETURN_IF_ERROR(check("model.block", spec.block(), limits::kSequenceTokens));
  if (spec.n_embd() % spec.n_head() == 0) return Status::ok();
  return wrong_setting("model.n_embd is " + std::to_string(spec.n_embd()) + " and model.n_head " +
                       std::to_string(spec.n_head()) +
                       ": the width must be a multiple of the number of heads");
}

double gpt2_flops_per_sample(const wire::ModelSpec& spec) {
  const double layers = spec.n_layer();
  const double channels = spec.n_embd();
  const double tokens = spec.block();  // of a sample
  const double weights = 12 * layers * channels * channels + spec.vocab() * channels;
  return tokens * (6 * weights + 12 * layers * channels * tokens);
}

}  // namespace lockstep
