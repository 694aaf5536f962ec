#include "worker/torch/inference/gpt2_session.h"

#include <ATen/ops/add.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/ge.h>
#include <ATen/ops/narrow.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/zeros.h>
#include <c10/core/InferenceMode.h>

#include <optional>

#include "comm/base/check.h"
#include "worker/torch/model/layers.h"

namespace lockstep {

Gpt2Session::Gpt2Session(const wire::ModelSpec& spec, Gpt2Parts parts,
                         std::vector<at::Tensor> parameters)
    : heads_(spec.n_head()),
      block_(spec.block()),
      parts_(std::move(parts)),
      parameters_(std::move(parameters)) {
  const c10::InferenceMode inference;
  const auto width = static_cast<int64_t>(spec.n_embd());
  for (size_t i = 0; i < parts_.blocks.size(); ++i)
    kept_.push_back({at::zeros({1, heads_, block_, width / heads_}),
                     at::zeros({1, heads_, block_, width / heads_})});
}

at::Tensor Gpt2Session::read(std::span<const int64_t> tokens) {
  const auto count = static_cast<int64_t>(tokens.size());
  LOCKSTEP_CHECK(count > 0 && length_ + count <= block_, "the tokens have a place in the block");
  const c10::InferenceMode inference;
  const ForwardMode mode;
  const Forward f{parameters_, {}, mode};
  const at::Tensor x = at::from_blob(const_cast<int64_t*>(tokens.data()), {1, count}, at::kLong);
  const at::Tensor& embedding = parameters_[parts_.tokens];
  at::Tensor stream = at::add(at::embedding(embedding, x),
                              at::narrow(parameters_[parts_.positions], 0, length_, count));
  at::Tensor mask;  // a token sees those before it and itself
  if (length_ > 0 && count > 1) {
    const at::Tensor place = at::arange(length_ + count, at::kLong);
    mask = place.narrow(0, length_, count).unsqueeze(1).ge(place);
  }
  at::Tensor branch;
  for (size_t i = 0; i < parts_.blocks.size(); ++i) {
    const Gpt2Block& block = parts_.blocks[i];
    const Normed first = add_and_norm(f, stream, branch, block.norm1);
    branch = attention(f, first.y, block, kept_[i], mask);
    const Normed second = add_and_norm(f, first.stream, branch, block.norm2);
    branch = linear(f, linear_gelu(f, second.y, block.wide), block.narrow);
    stream = second.stream;
  }
  length_ += count;
  const Normed last =
      add_and_norm(f, stream.narrow(1, count - 1, 1), branch.narrow(1, count - 1, 1), parts_.norm);
  return tied_logits(f, last.y, embedding).flatten();
}

// x: (1, T, E) -> (1, T, E).
at::Tensor Gpt2Session::attention(const Forward& f, const at::Tensor& x, const Gpt2Block& block,
                                  Kept& kept, const at::Tensor& mask) const {
  const int64_t count = x.size(1);
  const int64_t width = x.size(2);
  const int64_t seen = length_ + count;
  const std::vector<at::Tensor> qkv = linear(f, x, block.qkv).split(width, 2);
  const auto by_head = [&](const at::Tensor& t) {  // (1, heads, T, E / heads)
    return t.view({1, count, heads_, width / heads_}).transpose(1, 2);
  };
  kept.keys.narrow(2, length_, count).copy_(by_head(qkv[1]));
  kept.values.narrow(2, length_, count).copy_(by_head(qkv[2]));
  const at::Tensor out = at::scaled_dot_product_attention(
      by_head(qkv[0]), kept.keys.narrow(2, 0, seen), kept.values.narrow(2, 0, seen),
      mask.defined() ? std::optional(mask) : std::nullopt, /*dropout_p=*/0,
      /*is_causal=*/count > 1 && !mask.defined());
  return linear(f, out.transpose(1, 2).reshape({1, count, width}), block.attended);
}

}  // namespace lockstep
