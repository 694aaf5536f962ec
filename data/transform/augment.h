// Augmentation: an image looks different every time it is seen, so a model learns what stays the
// same. It does the augmentation words of data.transforms (transform_list.h), on bytes, before they
// become floats.
//
// Every choice is a number of the image's own random stream, keyed by (seed, epoch, position) and
// by the kind of step. The choice does not depend on threads, ranks or other steps on the image. A
// resumed run makes the same images.
//
// Arithmetic uses integers and single operations of IEEE floats, so the bits do not depend on the
// instruction set. The only functions from the math library are the sine and cosine of `rotate`,
// rounded to 16 bits after the point.
//
// Thread-safety: an Augmenter is for one thread at a time.
#pragma once

#include <cstdint>
#include <vector>

#include "comm/base/status.h"
#include "data/dataset/channel_statistics.h"
#include "data/dataset/sample_shape.h"
#include "data/transform/image_ops.h"
#include "data/transform/transform_list.h"

namespace lockstep::data {

class Augmenter {
 public:
  Augmenter() = default;  // an empty one
  // For images of `shape`, whose channels have these `statistics` over the training data. kUsage if
  // a step does not fit the shape:
  // - saturation or hue on anything but three channels
  // - a border or a square larger than the image
  // - a sequence.
  static Result<Augmenter> create(std::vector<AugmentStep> steps, const SampleShape& shape,
                                  const std::vector<ChannelStatistics>& statistics);

  bool is_empty() const { return steps_.empty(); }

  // Takes an image as stored, (C, H, W) or (H, W, C). Returns it as (C, H, W), valid until the next
  // call.
  const uint8_t* make(const uint8_t* stored, uint64_t stream);

  // Does to a mask of the image's size, in place, what make() does to the places of pixels with
  // this stream: flip, flip_vertical, pad_crop and rotate, with 0 outside. Takes the nearest pixel.
  // Does not touch what make() has returned.
  void make_mask(uint8_t* mask, uint64_t stream);

  // The stream of the sample at a position of an epoch.
  static uint64_t stream_of(uint64_t seed, uint64_t epoch, uint64_t position);

 private:
  void apply(const AugmentStep& step, uint64_t image_stream);
  void apply_to_mask(const AugmentStep& step, uint64_t image_stream, const ImageBytes& mask);

  std::vector<AugmentStep> steps_;
  SampleShape shape_;
  std::vector<uint8_t> means_;  // by channel
  std::vector<uint8_t> image_;
  std::vector<uint8_t> other_;
  std::vector<uint8_t> mask_;  // room for a mask
};

}  // namespace lockstep::data
