#include "data/dataset/float_image.h"

#include <vector>

#include "data/base/file_errors.h"
#include "data/base/stored_floats.h"

namespace lockstep::data {

bool read_float_image(const uint8_t* stored, const SampleShape& shape, float* out) {
  const uint64_t count = shape.elements();
  if (!shape.channels_last)
    return copy_floats(stored, shape.float_bytes, count, reinterpret_cast<std::byte*>(out));
  std::vector<float> pixels(count);  // (H, W, C)
  const bool are_fine =
      copy_floats(stored, shape.float_bytes, count, reinterpret_cast<std::byte*>(pixels.data()));
  const uint64_t plane = uint64_t{shape.height} * shape.width;
  for (uint64_t c = 0; c < shape.channels; ++c)
    for (uint64_t i = 0; i < plane; ++i) *out++ = pixels[i * shape.channels + c];
  return are_fine;
}

std::string floats_text(const SampleShape& shape) {
  std::string sizes;
  for (const int64_t size : shape.model_sizes())
    sizes += (sizes.empty() ? "" : "x") + std::to_string(size);
  return (shape.depth > 0 ? "volumes of " + sizes + " (C x D x H x W)"
                          : "images of " + sizes + " (C x H x W)") +
         " of float" + std::to_string(8 * shape.float_bytes);
}

Status refused_floats(const std::string& sample) {
  return bad(sample +
             " has a value that is NaN, infinite or beyond float32; correct it, or leave the "
             "sample out");
}

}  // namespace lockstep::data
