#include "worker/model/gpt2_parts.h"

#include <array>
#include <cmath>
#include <string>

#include "comm/base/check.h"
#include "comm/base/limits.h"

namespace lockstep {
namespace {

struct Size {
  uint32_t layers;
  uint32_t heads;
  uint32_t width;
};
constexpr Size kSizes[] = {{4, 4, 256},    {6, 6, 384},    {8, 8, 512},   {12, 12, 768},
                           {24, 16, 1024}, {36, 20, 1280}, {48, 25, 1600}};
constexpr uint32_t kBlock = 1024;
constexpr double kStd = 0.02;

// Adds layers with GPT-2's initial values.
class Builder {
 public:
  uint32_t add(const std::string& name, std::vector<int64_t> shape, double std,
               float constant = 0) {
    layout_.parameters.push_back({name, std::move(shape), 0, constant, std});
    return static_cast<uint32_t>(layout_.parameters.size()) - 1;
  }
  uint32_t add_norm(const std::string& name, int64_t width) {
    const uint32_t weight = add(name + ".weight", {width}, 0, 1);
    add(name + ".bias", {width}, 0);
    return weight;
  }
  uint32_t add_linear(const std::string& name, int64_t in, int64_t out, double std) {
    const uint32_t weight = add(name + ".weight", {out, in}, std);
    add(name + ".bias", {out}, 0);
    return weight;
  }
  ModelLayout take() { return std::move(layout_); }

 private:
  ModelLayout layout_;
};

Status wrong(const std::string& what) {
  return {Code::kUsage, what};
}

}  // namespace

void resolve_gpt2(wire::ModelSpec* spec) {
  size_t i = 0;
  while (i < std::size(kGpt2Sizes) && kGpt2Sizes[i] != spec->size()) ++i;
  LOCKSTEP_CHECK(i < std::size(kGpt2Sizes), "a size that is not known");
  if (spec->n_layer() == 0) spec->set_n_layer(kSizes[i].layers);
  if (spec->n_head() == 0) spec->set_n_head(kSizes[i].heads);
  if (spec->n_embd() == 0) spec->set_n_embd(kSizes[i].width);
  if (spec->block() == 0) spec->set_block(kBlock);
}

Status check_gpt2(const wire::ModelSpec& spec) {
  const auto check = [](const char* key, uint64_t value, uint64_t most) {
    if (value > 0 && value <= most) return Status::ok();
    return wrong(std::string(key) + " is " + std::to_string(value) + " but must be 1 to " +
                 std::to_string(most));
  };
  LOCKSTEP_RETURN_IF_ERROR(check("model.n_layer", spec.n_layer(), limits::kModelLayers));
  LOCKSTEP_RETURN_IF_ERROR(check("model.n_head", spec.n_head(), limits::kModelWidth));
  LOCKSTEP_RETURN_IF_ERROR(check("model.n_embd", spec.n_embd(), limits::kModelWidth));
  LOCKSTEP_RETURN_IF_ERROR(check("model.block", spec.block(), limits::kSequenceTokens));
  if (spec.n_embd() % spec.n_head() == 0) return Status::ok();
  return wrong("model.n_embd is " + std::to_string(spec.n_embd()) + " and model.n_head " +
               std::to_string(spec.n_head()) +
               ": the width must be a multiple of the number of heads");
}

Gpt2Parts make_gpt2_parts(const wire::ModelSpec& spec, uint32_t vocab) {
  const auto width = static_cast<int64_t>(spec.n_embd());
  const double residual_std = kStd / std::sqrt(2.0 * spec.n_layer());
  Gpt2Parts parts;
  Builder builder;
  parts.tokens = builder.add("wte.weight", {vocab, width}, kStd);
  parts.positions = builder.add("wpe.weight", {spec.block(), width}, kStd);
  for (uint32_t i = 0; i < spec.n_layer(); ++i) {
    const std::string name = "h." + std::to_string(i) + ".";
    Gpt2Block& block = parts.blocks.emplace_back();
    block.norm1 = builder.add_norm(name + "ln_1", width);
    block.qkv = builder.add_linear(name + "attn.c_attn", width, 3 * width, kStd);
    block.attended = builder.add_linear(name + "attn.c_proj", width, width, residual_std);
    block.norm2 = builder.add_norm(name + "ln_2", width);
    block.wide = builder.add_linear(name + "mlp.c_fc", width, 4 * width, kStd);
    block.narrow = builder.add_linear(name + "mlp.c_proj", 4 * width, width, residual_std);
  }
  parts.norm = builder.add_norm("ln_f", width);
  parts.layout = builder.take();
  return parts;
}

}  // namespace lockstep
