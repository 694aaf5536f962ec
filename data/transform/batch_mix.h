// Mixes images with others of their batch: the end of data.transforms (transform_list.h). mixup
// gives the weighted sum of two images; cutmix gives one image with a rectangle of the other.
// Labels mix in the same shares: the loss is the sum of both labels' losses in these shares.
//
// A batch is one slot's micro-batch. Each sample mixes with the sample before it
// (comm/base/mixing.h). Kind, share and place are drawn once a batch, as torchvision and timm do.
// The random stream is keyed by seed, epoch and the position of the batch's first sample, so the
// draws do not depend on ranks or threads. A batch of one sample stays as it is. Why: adr/0001.
//
// Shares are multiples of 2^-24. Arithmetic uses single operations of IEEE floats.
//
// Sources: H. Zhang et al., mixup: Beyond Empirical Risk Minimization, ICLR 2018; S. Yun et al.,
// CutMix, ICCV 2019.
//
// Thread-safety: a BatchMixer is for one thread at a time; the rest are pure functions and values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "data/dataset/sample_shape.h"
#include "data/transform/transform_list.h"

namespace lockstep::data {

// The sample's own share of its label and of its pixels.
struct MixShares {
  float label = 1;
  float pixels = 1;  // outside the rectangle; images of bytes: applied when they become floats
  bool operator==(const MixShares&) const = default;
};

// The rectangle [top, bottom) x [left, right) comes from the other sample; empty for mixup.
struct BatchMix {
  MixShares shares;
  uint32_t top = 0;
  uint32_t left = 0;
  uint32_t bottom = 0;
  uint32_t right = 0;
  bool operator==(const BatchMix&) const = default;

  bool cuts() const { return bottom > top && right > left; }
};

// REQUIRES: a rule that mixes.
BatchMix draw_mix(const MixRule& rule, uint64_t stream, uint32_t height, uint32_t width);

class BatchMixer {
 public:
  BatchMixer() = default;  // mixes nothing
  // For images of `shape`, (C, H, W), each of `image_bytes` bytes: floats or bytes.
  BatchMixer(const MixRule& rule, const SampleShape& shape, uint64_t image_bytes)
      : rule_(rule), shape_(shape), is_of_bytes_(image_bytes == shape.elements()) {}

  // `first_stream`: the stream of the batch's first sample (Augmenter::stream_of()). Mixes floats.
  // Only cuts bytes: the code that makes them floats applies the share of their pixels.
  MixShares mix(uint64_t first_stream, uint32_t samples, std::byte* images);

 private:
  void cut_bytes(const BatchMix& mix, uint32_t samples, uint8_t* images);
  void mix_floats(const BatchMix& mix, uint32_t samples, float* images);

  MixRule rule_;
  SampleShape shape_;
  bool is_of_bytes_ = false;
  std::vector<std::byte> last_;  // the last sample, as it was
};

}  // namespace lockstep::data
