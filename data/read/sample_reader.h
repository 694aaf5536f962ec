// From a stored sample to what a model gets: floats of an image, transformed; int64 token ids of a
// sequence; and the labels of either.
//
// Images can be had as stored, too, for a device that transforms them by itself.
//
// Files are mapped where they lie, and may change under us: every token and label is compared with
// the number of classes, which the model and the loss index with, as it is read.
//
// Thread-safety: immutable after create(); all calls from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "comm/base/status.h"
#include "data/index/dataset.h"
#include "data/transform/normalize.h"

namespace lockstep::data {

enum class ImageForm {
  kFloats,  // transformed
  kStored,  // bytes
};

class SampleReader {
 public:
  // `dataset` outlives the reader. `statistics` by channel, those of the training data for every
  // split. kUsage for an unknown transform, and for any of sequences: they are for images.
  static Result<SampleReader> create(const Dataset& dataset,
                                     const std::vector<std::string>& transforms,
                                     const std::vector<ChannelStatistics>& statistics,
                                     ImageForm form = ImageForm::kFloats);

  // In a batch, of one sample.
  uint64_t input_bytes() const {
    if (shape_.is_sequence()) return shape_.elements() * sizeof(int64_t);
    return shape_.elements() * (form_ == ImageForm::kStored ? sizeof(uint8_t) : sizeof(float));
  }
  const SampleShape& shape() const { return shape_; }

  // `input`: input_bytes(), aligned for what it holds; `labels`: shape().labels() of them.
  // kBadData where a token or label is no class. REQUIRES: i < samples of the dataset.
  Status read(uint64_t i, std::byte* input, int64_t* labels) const;

  // Samples [begin, end) in their natural order, one after another, for evaluation.
  // REQUIRES: begin <= end <= samples of the dataset.
  Status read_range(uint64_t begin, uint64_t end, std::byte* inputs, int64_t* labels) const;

 private:
  Status not_a_class(uint64_t i, int64_t found) const;

  SampleReader(const Dataset& dataset, Transform transform, ImageForm form)
      : dataset_(&dataset),
        shape_(dataset.shape()),
        transform_(std::move(transform)),
        form_(form) {}

  const Dataset* dataset_;
  SampleShape shape_;
  Transform transform_;
  ImageForm form_;
};

}  // namespace lockstep::data
