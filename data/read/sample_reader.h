// From a stored sample to what a model gets: floats of an image, transformed, and for training
// augmented; floats of a row of a table; int64 token ids of a sequence; and the labels of each.
//
// Images, and only they, can be had as bytes, too, for a device that transforms them by itself.
// Either way they are (C, H, W), however they are stored.
//
// Files are mapped where they lie, and may change under us: every token and label is compared with
// the number of classes, which the model and the loss index with, as it is read; and whoever has
// read a batch asks whether the files are still what they were (unchanged()).
//
// Thread-safety: immutable after create(); all calls from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "comm/base/status.h"
#include "data/dataset/dataset.h"
#include "data/image/image_decoder.h"
#include "data/transform/augment.h"
#include "data/transform/normalize.h"

namespace lockstep::data {

enum class ImageForm {
  kFloats,  // transformed
  kStored,  // bytes, not transformed
};

// In a batch, of one sample without its labels.
inline uint64_t input_bytes(const SampleShape& shape, ImageForm form) {
  if (shape.is_sequence()) return shape.elements() * sizeof(int64_t);
  const bool are_bytes = form == ImageForm::kStored && !shape.is_row;
  return shape.elements() * (are_bytes ? sizeof(uint8_t) : sizeof(float));
}

// What one thread makes samples with: where it keeps them on the way, and their augmentation.
struct SampleHand {
  Augmenter augmenter;  // makes nothing different where it is empty
  ImageDecoder decoder;
  std::vector<uint8_t> encoded;
  std::vector<uint8_t> decoded;
};

class SampleReader {
 public:
  // `dataset` outlives the reader. `statistics` by channel, those of the training data for every
  // split. kUsage for an unknown transform, for any of sequences, which are no images, and of rows
  // for any but `normalize`.
  // REQUIRES: a data set opened with the frame that the transforms begin with.
  static Result<SampleReader> create(const Dataset& dataset,
                                     const std::vector<std::string>& transforms,
                                     const std::vector<ChannelStatistics>& statistics,
                                     ImageForm form = ImageForm::kFloats);

  uint64_t input_bytes() const { return data::input_bytes(shape_, form_); }
  const SampleShape& shape() const { return shape_; }

  // `input`: input_bytes(), aligned for what it holds; `labels`: shape().labels() of them.
  // kBadData where a token or label is no class, and for an image that cannot be decoded or is not
  // what it was. With a stream the sample as training sees it, cut and augmented by chance.
  // `given`: its bytes, where they have been read already (Dataset::extent()).
  // REQUIRES: i < samples of the dataset; a hand where there is a stream, or images are encoded.
  Status read(uint64_t i, std::byte* input, int64_t* labels, SampleHand* hand = nullptr,
              std::optional<uint64_t> stream = {}, std::span<const uint8_t> given = {}) const;

  // kBadData naming a file that is no longer what it was, where one holds any of these samples, or
  // their labels: what was read of them does not count.
  Status unchanged(std::span<const uint64_t> samples) const { return dataset_->unchanged(samples); }

  // Samples [begin, end) in their natural order, one after another, for evaluation; with
  // unchanged().
  // REQUIRES: begin <= end <= samples of the dataset.
  Status read_range(uint64_t begin, uint64_t end, std::byte* inputs, int64_t* labels) const;

 private:
  Result<const uint8_t*> decode(uint64_t i, SampleHand& hand, std::optional<uint64_t> stream,
                                std::span<const uint8_t> encoded) const;
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
