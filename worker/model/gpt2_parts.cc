#include "worker/model/gpt2_parts.h"

#include <cmath>
#include <string>

namespace lockstep {
namespace {

constexpr double kStd = 0.02;

// Adds layers with GPT-2's initial values.
class Builder {
 public:
  uint32_t add(const std::string& name, std::vector<int64_t> shape, double std,
               float constant = 0) {
    layout_.parameters.push_back({name, std::move(shape), 0, constant, std});
    return static_cast<uint32_t>(layout_.parameters.size()) - 1;
  }
  uint32_t add_embedding(const std::string& name, int64_t rows, int64_t width) {
    const uint32_t weight = add(name, {rows, width}, kStd);
    layout_.parameters[weight].is_hidden = false;
    return weight;
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

}  // namespace

Gpt2Parts make_gpt2_parts(const wire::ModelSpec& spec, uint32_t vocab) {
  const auto width = static_cast<int64_t>(spec.n_embd());
  const double residual_std = kStd / std::sqrt(2.0 * spec.n_layer());
  Gpt2Parts parts;
  Builder builder;
  parts.tokens = builder.add_embedding("wte.weight", vocab, width);
  parts.positions = builder.add_embedding("wpe.weight", spec.block(), width);
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
