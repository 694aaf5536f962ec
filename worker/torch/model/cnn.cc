// conv 3x3 to 16, ReLU, max-pool 2, conv 3x3 to 32, ReLU, max-pool 2, linear to 64, ReLU, linear to
// classes. BatchNorm, on request, after the convolutions (where every slot has many values per
// channel, however short it is); dropout after the hidden linear layer.
#include <ATen/ops/flatten.h>
#include <ATen/ops/relu.h>

#include <array>

#include "worker/torch/model/builtin.h"
#include "worker/torch/model/kernel_layers.h"
#include "worker/torch/model/layers.h"
#include "worker/torch/model/relu_pool.h"

namespace lockstep {
namespace {

constexpr int64_t kChannels[] = {16, 32};
constexpr int64_t kKernel = 3;
constexpr int64_t kCnnHidden = 64;
constexpr uint32_t kSmallestCnnSide = 10;  // 10 - 2 = 8, pooled 4, - 2 = 2, pooled 1

struct ConvLayer {
  uint32_t weight = 0;
  LayoutBuilder::BatchNorm norm;
};

struct CnnParts {
  ModelLayout layout;
  std::array<ConvLayer, 2> convs;
  uint32_t hidden = 0;
  uint32_t output = 0;
};

CnnParts make_cnn_parts(const wire::ModelSpec& spec, const data::SampleShape& shape,
                        uint32_t classes) {
  CnnParts parts;
  LayoutBuilder builder;
  int64_t channels = shape.channels;
  int64_t height = shape.height;
  int64_t width = shape.width;
  for (size_t i = 0; i < parts.convs.size(); ++i) {
    const std::string number = std::to_string(i + 1);
    parts.convs[i].weight = builder.add_conv("conv" + number, channels, kChannels[i], kKernel);
    channels = kChannels[i];
    height -= kKernel - 1;
    width -= kKernel - 1;
    if (spec.batch_norm()) {
      parts.convs[i].norm =
          builder.add_batch_norm("bn" + number, channels, static_cast<uint64_t>(height * width));
    }
    height /= 2;
    width /= 2;
  }
  parts.hidden = builder.add_linear("fc1", channels * height * width, kCnnHidden);
  parts.output = builder.add_output("fc2", kCnnHidden, classes);
  parts.layout = builder.take();
  return parts;
}

class Cnn final : public LogitsModel {
 public:
  Cnn(const wire::ModelSpec& spec, CnnParts parts)
      : LogitsModel(std::move(parts.layout)),
        spec_(spec),
        convs_(parts.convs),
        hidden_(parts.hidden),
        output_(parts.output) {}

  at::Tensor logits(const at::Tensor& x, std::span<const at::Tensor> parameters,
                    std::span<const at::Tensor> buffers, const ForwardMode& mode) const override {
    const Forward f{parameters, buffers, mode};
    at::Tensor h = x;  // (B, C, H, W)
    for (const ConvLayer& layer : convs_) {
      h = conv(f, h, layer.weight);
      if (spec_.batch_norm()) h = batch_norm(f, h, layer.norm);
      h = relu_max_pool2(h);  // (B, 16, 13, 13), (B, 32, 5, 5)
    }
    h = at::relu(linear(f, h.flatten(1), hidden_));  // (B, 64)
    h = dropout(f, h, spec_.dropout(), 0);
    return linear(f, h, output_);  // (B, classes)
  }

 private:
  wire::ModelSpec spec_;
  std::array<ConvLayer, 2> convs_;
  uint32_t hidden_;
  uint32_t output_;
};

Result<std::unique_ptr<Model>> make_cnn(const wire::ModelSpec& spec, const data::SampleShape& shape,
                                        uint32_t classes) {
  if (shape.height < kSmallestCnnSide || shape.width < kSmallestCnnSide) {
    return Status(Code::kConfig, "the cnn needs images of at least 10x10 pixels, these are " +
                                     std::to_string(shape.height) + "x" +
                                     std::to_string(shape.width) + "; use model.name: mlp");
  }
  return std::unique_ptr<Model>(new Cnn(spec, make_cnn_parts(spec, shape, classes)));
}

}  // namespace

constinit const ModelBuilder kCnnBuilder{"cnn", make_cnn};

}  // namespace lockstep
