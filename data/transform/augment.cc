#include "data/transform/augment.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>
#include <utility>

#include "comm/base/chance.h"
#include "comm/base/check.h"
#include "data/dataset/channel_statistics.h"
#include "data/dataset/sample_shape.h"
#include "data/image/frame.h"
#include "data/transform/image_ops.h"

namespace lockstep::data {
namespace {

Status does_not_fit(const std::string& what) {
  return {Code::kUsage, "data.transforms: " + what};
}

Status check_fits(const AugmentStep& step, const SampleShape& shape) {
  const uint32_t side = std::min(shape.height, shape.width);
  const bool is_place = step.kind == AugmentKind::kPadCrop || step.kind == AugmentKind::kCutout;
  if (is_place && step.amount > side)
    return does_not_fit("a border or square of " + std::to_string(static_cast<int>(step.amount)) +
                        " pixels is larger than the images, of " + std::to_string(shape.height) +
                        " x " + std::to_string(shape.width));
  const bool is_colour = step.kind == AugmentKind::kSaturation || step.kind == AugmentKind::kHue;
  if (is_colour && shape.channels != 3)
    return does_not_fit(std::string(step.kind == AugmentKind::kHue ? "hue" : "saturation") +
                        " needs images of three channels; these have " +
                        std::to_string(shape.channels));
  return Status::ok();
}

// -1 to 1
double either_way(uint64_t key) {
  return 2 * unit(key, 0) - 1;
}

float factor(uint64_t key, double amount) {
  return static_cast<float>(1 + amount * either_way(key));
}

int64_t place(uint64_t key, uint64_t i, uint64_t places) {
  return static_cast<int64_t>(below(key, i, places));
}

int64_t fixed_point(double value) {
  return std::llround(value * 65'536);
}

struct Shift {
  int64_t down;
  int64_t right;
};

Shift shift_of(const AugmentStep& step, uint64_t stream) {
  const auto border = static_cast<int64_t>(step.amount);
  const auto places = static_cast<uint64_t>(2 * border + 1);
  return {place(stream, 0, places) - border, place(stream, 1, places) - border};
}

struct Turn {
  int64_t cosine;
  int64_t sine;
};

Turn turn_of(const AugmentStep& step, uint64_t stream) {
  const double angle = step.amount * either_way(stream) * std::numbers::pi / 180;
  return {fixed_point(std::cos(angle)), fixed_point(std::sin(angle))};
}

}  // namespace

Result<Augmenter> Augmenter::create(std::vector<AugmentStep> steps, const SampleShape& shape,
                                    const std::vector<ChannelStatistics>& statistics) {
  Augmenter augmenter;
  if (steps.empty()) return augmenter;
  if (shape.is_sequence()) return does_not_fit("augmentation is for images, and these are tokens");
  LOCKSTEP_CHECK(statistics.size() == shape.channels, "statistics of another number of channels");
  for (const AugmentStep& step : steps) LOCKSTEP_RETURN_IF_ERROR(check_fits(step, shape));
  for (const ChannelStatistics& channel : statistics)
    augmenter.means_.push_back(static_cast<uint8_t>(std::lround(255 * channel.mean)));
  augmenter.steps_ = std::move(steps);
  augmenter.shape_ = shape;
  augmenter.image_.resize(shape.elements());
  augmenter.other_.resize(shape.elements());
  return augmenter;
}

uint64_t Augmenter::stream_of(uint64_t seed, uint64_t epoch, uint64_t position) {
  return stream_key({static_cast<uint64_t>(StreamKind::kAugment), seed, epoch, position});
}

const uint8_t* Augmenter::make(const uint8_t* stored, uint64_t stream) {
  const ImageBytes image{image_.data(), shape_.channels, shape_.height, shape_.width};
  if (shape_.channels_last)
    copy_channels_first(stored, image);
  else
    std::memcpy(image_.data(), stored, image_.size());
  for (const AugmentStep& step : steps_) apply(step, stream);
  return image_.data();
}

void Augmenter::apply(const AugmentStep& step, uint64_t image_stream) {
  const uint64_t stream = stream_key({image_stream, static_cast<uint64_t>(step.kind)});
  const ImageBytes image{image_.data(), shape_.channels, shape_.height, shape_.width};
  const ImageBytes other{other_.data(), shape_.channels, shape_.height, shape_.width};
  const auto whole = static_cast<int64_t>(step.amount);
  switch (step.kind) {
    case AugmentKind::kFlip:
      if (is_flipped(Flip::kLeftToRight, step.amount, image_stream)) mirror(image);
      return;
    case AugmentKind::kFlipVertical:
      if (is_flipped(Flip::kTopToBottom, step.amount, image_stream)) mirror_vertically(image);
      return;
    case AugmentKind::kPadCrop: {
      const Shift by = shift_of(step, stream);
      shift(image, by.down, by.right, other);
      return std::swap(image_, other_);
    }
    case AugmentKind::kRotate: {
      const Turn by = turn_of(step, stream);
      rotate(image, by.cosine, by.sine, other);
      return std::swap(image_, other_);
    }
    case AugmentKind::kBrightness:
      return scale_brightness(image, factor(stream, step.amount));
    case AugmentKind::kContrast:
      return scale_contrast(image, factor(stream, step.amount));
    case AugmentKind::kSaturation:
      return scale_saturation(image, factor(stream, step.amount));
    case AugmentKind::kHue:
      return turn_hue(image, fixed_point(6 * step.amount * either_way(stream)));
    case AugmentKind::kCutout:
      return fill_square(image, place(stream, 0, shape_.height) - whole / 2,
                         place(stream, 1, shape_.width) - whole / 2, whole, means_);
  }
}

void Augmenter::make_mask(uint8_t* mask, uint64_t stream) {
  const ImageBytes image{mask, 1, shape_.height, shape_.width};
  for (const AugmentStep& step : steps_) apply_to_mask(step, stream, image);
}

void Augmenter::apply_to_mask(const AugmentStep& step, uint64_t image_stream,
                              const ImageBytes& mask) {
  const uint64_t stream = stream_key({image_stream, static_cast<uint64_t>(step.kind)});
  mask_.resize(mask.plane());
  const ImageBytes other{mask_.data(), 1, mask.height, mask.width};
  const auto take_other = [&] { std::memcpy(mask.data, other.data, mask.plane()); };
  switch (step.kind) {
    case AugmentKind::kFlip:
      if (is_flipped(Flip::kLeftToRight, step.amount, image_stream)) mirror(mask);
      return;
    case AugmentKind::kFlipVertical:
      if (is_flipped(Flip::kTopToBottom, step.amount, image_stream)) mirror_vertically(mask);
      return;
    case AugmentKind::kPadCrop: {
      const Shift by = shift_of(step, stream);
      shift(mask, by.down, by.right, other);
      return take_other();
    }
    case AugmentKind::kRotate: {
      const Turn by = turn_of(step, stream);
      rotate_nearest(mask, by.cosine, by.sine, other);
      return take_other();
    }
    case AugmentKind::kBrightness:
    case AugmentKind::kContrast:
    case AugmentKind::kSaturation:
    case AugmentKind::kHue:
    case AugmentKind::kCutout:  // hides pixels; the mask stays as it is
      return;
  }
}

}  // namespace lockstep::data
