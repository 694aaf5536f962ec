// The parts of a residual network (He et al. 2015, arXiv:1512.03385). Names and order are as in
// torchvision's models. As in these models, the 3x3 convolution of the bottleneck block has the
// stride.
//
// Stem cifar, for images of up to 64 pixels: a 3x3 convolution that keeps the size. Stem imagenet:
// a 7x7 convolution with stride 2, then a 3x3 max-pool with stride 2.
//
// Thread-safety: values and pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "data/dataset/sample_shape.h"
#include "worker/model/spec.h"
#include "worker/torch/model/layers.h"

namespace lockstep {

// A convolution and its normalisation.
struct ResnetConv {
  uint32_t weight = 0;
  ConvPlace place;
  LayoutBuilder::BatchNorm norm;
};

struct ResnetBlock {
  std::vector<ResnetConv> convs;         // a ReLU between two, and after the sum
  std::optional<ResnetConv> downsample;  // on the shortcut, if the shape changes
};

struct ResnetParts {
  ModelLayout layout;
  bool has_pool = false;  // after the stem
  ResnetConv stem;
  std::vector<ResnetBlock> blocks;
  uint32_t output = 0;  // linear
};

// REQUIRES: depth is 18 or 50.
ResnetParts make_resnet_parts(uint32_t depth, bool is_imagenet_stem, const data::SampleShape& shape,
                              uint32_t classes);

}  // namespace lockstep
