// in - 256 - 128 - classes with ReLU; BatchNorm (before ReLU) and dropout (after) on request.
#include <ATen/ops/flatten.h>
#include <ATen/ops/relu.h>

#include <array>

#include "worker/torch/model/builtin.h"
#include "worker/torch/model/kernel_layers.h"
#include "worker/torch/model/layers.h"

namespace lockstep {
namespace {

constexpr int64_t kMlpHidden[] = {256, 128};

struct HiddenLayer {
  uint32_t weight = 0;
  LayoutBuilder::BatchNorm norm;
};

struct MlpParts {
  ModelLayout layout;
  std::array<HiddenLayer, 2> hidden;
  uint32_t output = 0;
};

MlpParts make_mlp_parts(const wire::ModelSpec& spec, const data::SampleShape& shape,
                        uint32_t classes) {
  MlpParts parts;
  LayoutBuilder builder;
  auto width = static_cast<int64_t>(shape.elements());
  for (size_t i = 0; i < parts.hidden.size(); ++i) {
    const std::string number = std::to_string(i + 1);
    parts.hidden[i].weight = builder.add_linear("fc" + number, width, kMlpHidden[i]);
    width = kMlpHidden[i];
    if (spec.batch_norm()) parts.hidden[i].norm = builder.add_batch_norm("bn" + number, width, 1);
  }
  parts.output = builder.add_output("fc3", width, classes);
  parts.layout = builder.take();
  return parts;
}

class Mlp final : public LogitsModel {
 public:
  Mlp(const wire::ModelSpec& spec, MlpParts parts)
      : LogitsModel(std::move(parts.layout)),
        spec_(spec),
        hidden_(parts.hidden),
        output_(parts.output) {}

  at::Tensor logits(const at::Tensor& x, std::span<const at::Tensor> parameters,
                    std::span<const at::Tensor> buffers, const ForwardMode& mode) const override {
    const Forward f{parameters, buffers, mode};
    at::Tensor h = x.flatten(1);  // (B, C*H*W)
    for (uint32_t i = 0; i < hidden_.size(); ++i) {
      h = linear(f, h, hidden_[i].weight);  // (B, 256), (B, 128)
      if (spec_.batch_norm()) h = batch_norm(f, h, hidden_[i].norm);
      h = at::relu(h);
      h = dropout(f, h, spec_.dropout(), i);
    }
    return linear(f, h, output_);  // (B, classes)
  }

 private:
  wire::ModelSpec spec_;
  std::array<HiddenLayer, 2> hidden_;
  uint32_t output_;
};

Result<std::unique_ptr<Model>> make_mlp(const wire::ModelSpec& spec, const data::SampleShape& shape,
                                        uint32_t classes) {
  return std::unique_ptr<Model>(new Mlp(spec, make_mlp_parts(spec, shape, classes)));
}

}  // namespace

constinit const ModelBuilder kMlpBuilder{"mlp", make_mlp};

}  // namespace lockstep
