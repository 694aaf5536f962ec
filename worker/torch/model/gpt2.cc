// GPT-2 (gpt2_parts.h): token ids to the logits of the token that follows each.
//
// Attention is LibTorch's scaled_dot_product_attention: its kernel for the CPU gives the same bits
// for the same slot, since a head is computed by one thread in one order, forward and backward.
// Several documents in a sequence, told apart by their positions, do not see each other
// (document_attention.h).
//
// Dropout, on request, is after the embedding and at the end of each half of a block; attention
// weights are not dropped: that kernel would draw from a generator of its own.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/add.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/narrow.h>
#include <ATen/ops/scaled_dot_product_attention.h>

#include <algorithm>
#include <memory>

#include "worker/model/gpt2_parts.h"
#include "worker/torch/model/builtin.h"
#include "worker/torch/model/document_attention.h"
#include "worker/torch/model/kernel_layers.h"
#include "worker/torch/model/layers.h"
#include "worker/torch/recompute/recompute.h"

namespace lockstep {
namespace {

// The documents of a forward. The first layer makes the tensors for all layers: LibTorch would make
// them in each layer, and keep them all until backward.
struct Documents {
  at::Tensor position;  // (B, T); undefined: every position sees itself and all before
  at::Tensor begins;    // begins_of_documents()
  at::Tensor mask;      // mask_of_documents()
};

class Gpt2 final : public LogitsModel {
 public:
  Gpt2(const wire::ModelSpec& spec, Gpt2Parts parts)
      : LogitsModel(std::move(parts.layout)),
        recomputes_(spec.recompute()),
        dropout_(spec.dropout()),
        heads_(spec.n_head()),
        parts_(std::move(parts)) {}

  at::Tensor logits(const at::Tensor& x, std::span<const at::Tensor> parameters,
                    std::span<const at::Tensor> buffers, const ForwardMode& mode) const override {
    const Forward f{parameters, buffers, mode};
    const at::Tensor& tokens = parameters[parts_.tokens];
    Embedded in = embedded(x, tokens, parameters[parts_.positions]);
    uint32_t layer = 0;  // tells the dropouts apart
    Flow flow{dropout(f, in.sum, dropout_, layer++), {}};
    const bool recomputes =
        recomputes_ && mode.training && mode.observer == nullptr && at::GradMode::is_enabled();
    const auto documents = std::make_shared<Documents>();
    documents->position = in.position;
    for (const Gpt2Block& block : parts_.blocks) {
      flow = recomputes ? recomputed_half_blocks(f, flow, documents, block, layer)
                        : half_blocks(f, flow, *documents, block, layer);
      layer += 2;
    }
    return tied_logits(f, add_and_norm(f, flow.stream, flow.branch, parts_.norm).y, tokens);
  }
  bool keeps_logits() const override { return false; }

 private:
  // Between two blocks, (B, T, E).
  struct Flow {
    at::Tensor stream;
    at::Tensor branch;  // added to the stream by the half block before; undefined: nothing
  };

  // Both halves of a block. `layer`: the first of two dropouts.
  Flow half_blocks(const Forward& f, const Flow& in, Documents& documents, const Gpt2Block& block,
                   uint32_t layer) const {
    const Normed first = add_and_norm(f, in.stream, in.branch, block.norm1);
    const at::Tensor seen = dropout(f, attention(f, first.y, documents, block), dropout_, layer);
    const Normed second = add_and_norm(f, first.stream, seen, block.norm2);
    const at::Tensor branch = linear(f, linear_gelu(f, second.y, block.wide), block.narrow);
    return {second.stream, dropout(f, branch, dropout_, layer + 1)};
  }

  // The same, but autograd keeps only the inputs until backward: flow and parameters. Documents
  // need no gradient.
  Flow recomputed_half_blocks(const Forward& f, const Flow& in,
                              const std::shared_ptr<Documents>& documents, const Gpt2Block& block,
                              uint32_t layer) const {
    const uint32_t end = block.narrow + 2;  // weight and bias
    const auto from = f.parameters.begin() + block.norm1;
    std::vector<at::Tensor> inputs(from, f.parameters.begin() + end);
    inputs.push_back(in.stream);
    if (in.branch.defined()) inputs.push_back(in.branch);
    const auto body = [this, mode = f.mode, documents, &block, layer,
                       end](std::span<const at::Tensor> given) {
      const size_t count = end - block.norm1;
      std::vector<at::Tensor> parameters(end);  // other blocks' are undefined
      std::copy_n(given.begin(), count, parameters.begin() + block.norm1);
      const Flow flow{given[count], given.size() > count + 1 ? given[count + 1] : at::Tensor()};
      const Flow out = half_blocks({parameters, {}, mode}, flow, *documents, block, layer);
      return std::vector<at::Tensor>{out.stream, out.branch};
    };
    const std::vector<at::Tensor> out = recomputed(body, inputs);
    return {out[0], out[1]};
  }

  struct Embedded {
    at::Tensor sum;       // (B, T, E), of tokens and positions
    at::Tensor position;  // of Documents
  };
  // x: (B, T), or (B, 2, T) of tokens and positions.
  static Embedded embedded(const at::Tensor& x, const at::Tensor& tokens,
                           const at::Tensor& positions) {
    if (x.dim() == 2)
      return {at::add(at::embedding(tokens, x), at::narrow(positions, 0, 0, x.size(1))), {}};
    const at::Tensor position = x.select(1, 1);
    return {at::add(at::embedding(tokens, x.select(1, 0)), at::embedding(positions, position)),
            position};
  }

  // x: (B, T, E) -> (B, T, E).
  at::Tensor attention(const Forward& f, const at::Tensor& x, Documents& documents,
                       const Gpt2Block& block) const {
    const int64_t batch = x.size(0);
    const int64_t length = x.size(1);
    const int64_t width = x.size(2);
    const std::vector<at::Tensor> qkv = linear(f, x, block.qkv).split(width, 2);
    if (takes_varlen(f.mode, documents, qkv[0])) {
      const at::Tensor seen = over_documents(f.mode, documents, qkv);
      return linear(f, seen.view({batch, length, width}), block.attended);
    }
    if (documents.position.defined() && !documents.mask.defined())
      documents.mask = mask_of_documents(documents.position, qkv[0]);
    const at::Tensor& mask = documents.mask;
    const auto by_head = [&](const at::Tensor& t) {  // (B, heads, T, E / heads)
      return t.view({batch, length, heads_, width / heads_}).transpose(1, 2);
    };
    const at::Tensor seen = at::scaled_dot_product_attention(
        by_head(qkv[0]), by_head(qkv[1]), by_head(qkv[2]),
        mask.defined() ? std::optional(mask) : std::nullopt, /*dropout_p=*/0,
        /*is_causal=*/!mask.defined());
    return linear(f, seen.transpose(1, 2).reshape({batch, length, width}), block.attended);
  }

  bool takes_varlen(const ForwardMode& mode, const Documents& documents,
                    const at::Tensor& query) const {
    return documents.position.defined() && mode.varlen != nullptr && mode.most_documents > 0 &&
           mode.varlen->takes(query.scalar_type(), query.size(-1) / heads_);
  }

  // `qkv`: each (B, T, E). -> (B * T, heads, E / heads)
  at::Tensor over_documents(const ForwardMode& mode, Documents& documents,
                            const std::vector<at::Tensor>& qkv) const {
    if (!documents.begins.defined())
      documents.begins = begins_of_documents(documents.position, mode.most_documents);
    const auto places = [&](const at::Tensor& t) {
      return t.reshape({t.size(0) * t.size(1), heads_, t.size(2) / heads_});
    };
    return mode.varlen->attend(places(qkv[0]), places(qkv[1]), places(qkv[2]), documents.begins,
                               qkv[0].size(1));
  }

  bool recomputes_;
  double dropout_;
  int64_t heads_;
  Gpt2Parts parts_;
};

Result<std::unique_ptr<Model>> make_gpt2(const wire::ModelSpec& spec,
                                         const data::SampleShape& shape, uint32_t vocab) {
  LOCKSTEP_RETURN_IF_ERROR(check_gpt2(spec));
  if (shape.tokens > spec.block()) {
    return Status(Code::kUsage, "sequences have " + std::to_string(shape.tokens) +
                                    " tokens, more than model.block, which is " +
                                    std::to_string(spec.block()));
  }
  return std::unique_ptr<Model>(new Gpt2(spec, make_gpt2_parts(spec, vocab)));
}

}  // namespace

constinit const ModelBuilder kGpt2Builder{"gpt2", make_gpt2};

}  // namespace lockstep
