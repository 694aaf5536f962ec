#include "worker/torch/model/resnet_parts.h"

#include <utility>

#include "comm/base/check.h"

namespace lockstep {
namespace {

constexpr int64_t kStemChannels = 64;
constexpr int64_t kBottleneckExpansion = 4;

struct Plan {
  std::vector<uint32_t> blocks;  // of each of the four layers
  bool has_bottleneck = false;
};

Plan plan_of(uint32_t depth) {
  LOCKSTEP_CHECK(depth == 18 || depth == 50, "there is no residual network of this depth");
  if (depth == 18) return {{2, 2, 2, 2}, false};
  return {{3, 4, 6, 3}, true};
}

// Follows the shape of the activations while layers are added.
class Builder {
 public:
  Builder(const data::SampleShape& shape)
      : channels_(shape.channels), height_(shape.height), width_(shape.width) {}

  ResnetConv add(const std::string& conv, const std::string& norm, int64_t out, int64_t kernel,
                 int64_t stride) {
    ResnetConv layer;
    layer.place = {stride, (kernel - 1) / 2};
    layer.weight = builder_.add_conv_without_bias(conv, channels_, out, kernel);
    channels_ = out;
    shrink(stride);
    layer.norm = builder_.add_batch_norm(norm, out, static_cast<uint64_t>(height_ * width_));
    return layer;
  }

  // A 3x3 window with padding 1, or a convolution of odd size with half of it as padding.
  void shrink(int64_t stride) {
    height_ = (height_ - 1) / stride + 1;
    width_ = (width_ - 1) / stride + 1;
  }

  ResnetBlock add_block(const std::string& name, int64_t width, int64_t stride, bool bottleneck) {
    const int64_t in = channels_;
    const int64_t in_height = height_;
    const int64_t in_width = width_;
    const int64_t out = bottleneck ? width * kBottleneckExpansion : width;
    ResnetBlock block;
    const auto add_conv = [&](int64_t channels, int64_t kernel, int64_t s) {
      const std::string number = std::to_string(block.convs.size() + 1);
      block.convs.push_back(
          add(name + ".conv" + number, name + ".bn" + number, channels, kernel, s));
    };
    if (bottleneck) add_conv(width, 1, 1);
    add_conv(width, 3, stride);
    add_conv(out, bottleneck ? 1 : 3, 1);
    if (stride != 1 || in != out) {
      channels_ = in;
      height_ = in_height;
      width_ = in_width;
      block.downsample = add(name + ".downsample.0", name + ".downsample.1", out, 1, stride);
    }
    return block;
  }

  uint32_t add_output(uint32_t classes) { return builder_.add_output("fc", channels_, classes); }
  ModelLayout take() { return builder_.take(); }

 private:
  LayoutBuilder builder_;
  int64_t channels_;
  int64_t height_;
  int64_t width_;
};

}  // namespace

ResnetParts make_resnet_parts(uint32_t depth, bool is_imagenet_stem, const data::SampleShape& shape,
                              uint32_t classes) {
  const Plan plan = plan_of(depth);
  ResnetParts parts;
  Builder builder(shape);
  parts.has_pool = is_imagenet_stem;
  parts.stem = builder.add("conv1", "bn1", kStemChannels, is_imagenet_stem ? 7 : 3,
                           is_imagenet_stem ? 2 : 1);
  if (parts.has_pool) builder.shrink(2);
  int64_t width = kStemChannels;
  for (size_t layer = 0; layer < plan.blocks.size(); ++layer) {
    for (uint32_t i = 0; i < plan.blocks[layer]; ++i) {
      const std::string name = "layer" + std::to_string(layer + 1) + "." + std::to_string(i);
      const int64_t stride = i == 0 && layer > 0 ? 2 : 1;
      parts.blocks.push_back(builder.add_block(name, width, stride, plan.has_bottleneck));
    }
    width *= 2;
  }
  parts.output = builder.add_output(classes);
  parts.layout = builder.take();
  return parts;
}

}  // namespace lockstep
