// Turns a stored sample into what a model gets: the floats of an image, transformed and for
// training augmented; the floats of an image or volume of floats, or of a row of a table, as they
// are; int64 token ids of a sequence; and the labels of each.
//
// Images can be had as bytes too, for a device that transforms them by itself. They are (C, H, W)
// either way, however they are stored.
//
// Files are mapped where they lie, and may change while they are read. So the reader compares every
// token and label with the number of classes, because the model and the loss use them as indices.
// After a batch, the caller asks whether the files changed (unchanged()).
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
#include "data/dataset/channel_statistics.h"
#include "data/dataset/dataset.h"
#include "data/image/image_decoder.h"
#include "data/loader/image_form.h"
#include "data/transform/augment.h"
#include "data/transform/normalize.h"

namespace lockstep::data {

// The tools of one thread that makes samples: its augmenter, its decoder, and buffers between
// them.
struct SampleHand {
  Augmenter augmenter;  // an empty one changes nothing
  ImageDecoder decoder;
  std::vector<uint8_t> encoded;
  std::vector<uint8_t> decoded;
  ImageDecoder mask_decoder;
  std::vector<uint8_t> encoded_mask;
};

class SampleReader {
 public:
  // `dataset` outlives the reader. `statistics`: by channel, of the training data for every split.
  // kUsage for an unknown transform, for any transform of sequences and of images of floats, for
  // any but `normalize` of rows, and for mixup and cutmix of images with masks. REQUIRES: a data
  // set opened with the frame that the transforms begin with.
  static Result<SampleReader> create(const Dataset& dataset,
                                     const std::vector<std::string>& transforms,
                                     const std::vector<ChannelStatistics>& statistics,
                                     ImageForm form = ImageForm::kFloats);

  uint64_t input_bytes() const { return data::input_bytes(shape_, form_); }
  const SampleShape& shape() const { return shape_; }

  // `input`: input_bytes(), aligned for what it holds; `labels`: shape().labels() of them.
  // `record`: shape().record_bytes() bytes, aligned to 8. `stream`: cuts and augments the sample by
  // chance, as training sees it. `given`: the bytes of the sample, if they have been read already
  // (Dataset::extent()). kBadData for a token or label that is no class, for a float that is NaN,
  // infinite or beyond float32, and for an image that
  // cannot be decoded or is not what it was. REQUIRES: i < samples of the dataset; a hand if there
  // is a stream or images are encoded.
  Status read(uint64_t i, std::byte* input, int64_t* labels, SampleHand* hand = nullptr,
              std::optional<uint64_t> stream = {}, std::span<const uint8_t> given = {},
              std::byte* record = nullptr) const;

  // kBadData names a changed file with any of these samples or their labels. Then nothing read of
  // these samples counts.
  Status unchanged(std::span<const uint64_t> samples) const { return dataset_->unchanged(samples); }

  // Samples [begin, end) in their natural order, for evaluation, then unchanged() of them.
  // `labels`: shape().label_words() for each. REQUIRES: begin <= end <= samples of the dataset.
  Status read_range(uint64_t begin, uint64_t end, std::byte* inputs, int64_t* labels) const;

 private:
  Result<const uint8_t*> decode(const SamplePlace& place, SampleHand& hand,
                                std::optional<uint64_t> stream,
                                std::span<const uint8_t> encoded) const;
  Status read_ids(uint64_t i, const uint8_t* stored, int64_t* input) const;
  Status read_floats(uint64_t i, const uint8_t* stored, float* input) const;
  // The masks of the sample, in its record.
  Status read_masks(const SamplePlace& place, SampleHand& hand, std::optional<uint64_t> stream,
                    std::byte* record) const;
  // Checks the largest label or token of sample i.
  Status check(uint64_t i, int64_t largest) const;
  Status not_a_class(uint64_t i, int64_t found) const;

  SampleReader(const Dataset& dataset, Transform transform, ImageForm form)
      : dataset_(&dataset),
        stored_(dataset.as<StoredSamples>()),
        encoded_(dataset.as<EncodedImages>()),
        sequences_(dataset.as<Sequences>()),
        labels_(dataset.as<Labels>()),
        fields_(dataset.as<SampleFields>()),
        masks_(dataset.as<SampleMasks>()),
        shape_(dataset.shape()),
        transform_(std::move(transform)),
        form_(form) {}

  const Dataset* dataset_;
  // One of these three, and labels or none.
  std::optional<As<StoredSamples>> stored_;
  std::optional<As<EncodedImages>> encoded_;
  std::optional<As<Sequences>> sequences_;
  std::optional<As<Labels>> labels_;
  std::optional<As<SampleFields>> fields_;
  std::optional<As<SampleMasks>> masks_;
  SampleShape shape_;
  Transform transform_;
  ImageForm form_;
};

}  // namespace lockstep::data
