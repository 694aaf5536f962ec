// The first layers of a resnet, as the job and the images decide them.
//
// Thread-safety: pure functions.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "comm/run/job/job.pb.h"

namespace lockstep {

// model.stem auto takes the stem of CIFAR for images of up to this side.
inline constexpr uint32_t kLargestCifarSide = 64;

inline bool is_resnet(const wire::ModelSpec& model) {
  return model.name() == "resnet18" || model.name() == "resnet50";
}

// "cifar", which keeps the size of the images, or "imagenet", which quarters it. REQUIRES:
// is_resnet(model).
inline std::string_view resnet_stem(const wire::ModelSpec& model, uint32_t height, uint32_t width) {
  if (model.stem() == "imagenet" || model.stem() == "cifar") return model.stem();
  return std::max(height, width) > kLargestCifarSide ? "imagenet" : "cifar";
}

}  // namespace lockstep
