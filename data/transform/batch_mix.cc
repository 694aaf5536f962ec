#include "data/transform/batch_mix.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "comm/base/chance.h"
#include "comm/base/mixing.h"
#include "comm/base/target_clones.h"
#include "data/dataset/sample_shape.h"
#include "data/transform/beta.h"

namespace lockstep::data {
namespace {

constexpr uint64_t kMixStream = 1'003;  // part of random streams, like the streams of frame.cc
enum Choice : uint64_t { kKind = 0, kRow = 1, kColumn = 2, kShare = 3 };

// Rounds so that one minus the share is a float, too.
float share_of(double x) {
  return static_cast<float>(std::floor(x * 0x1p24 + 0.5) * 0x1p-24);
}

// [begin, end) of `length` pixels around one of them, `half` either way.
void around(uint64_t middle, uint64_t half, uint32_t length, uint32_t& begin, uint32_t& end) {
  begin = static_cast<uint32_t>(middle - std::min(middle, half));
  end = static_cast<uint32_t>(std::min<uint64_t>(middle + half, length));
}

BatchMix draw_cut(uint64_t key, double share, uint32_t height, uint32_t width) {
  const double half_side = 0.5 * std::sqrt(1 - share);
  BatchMix mix;
  around(below(key, kRow, height), static_cast<uint64_t>(half_side * height), height, mix.top,
         mix.bottom);
  around(below(key, kColumn, width), static_cast<uint64_t>(half_side * width), width, mix.left,
         mix.right);
  const double cut = static_cast<double>(mix.bottom - mix.top) * (mix.right - mix.left);
  mix.shares.label = share_of(1 - cut / (static_cast<double>(height) * width));
  return mix;
}

LOCKSTEP_CLONES void add_other(float* own, const float* other, uint64_t n, float share) {
  for (uint64_t i = 0; i < n; ++i) own[i] = mixed(own[i], other[i], share);
}

template <typename T>
void cut(const BatchMix& mix, const SampleShape& shape, T* own, const T* other) {
  for (uint32_t c = 0; c < shape.channels; ++c) {
    for (uint32_t y = mix.top; y < mix.bottom; ++y) {
      const uint64_t at = (uint64_t{c} * shape.height + y) * shape.width + mix.left;
      std::memcpy(own + at, other + at, (mix.right - mix.left) * sizeof(T));
    }
  }
}

// `of_two(own, other)` for every sample, in place: from the last on, whose neighbours come later.
template <typename T, typename OfTwo>
void for_every_two(T* images, uint64_t samples, uint64_t elements, std::vector<std::byte>& last,
                   const OfTwo& of_two) {
  last.resize(elements * sizeof(T));
  std::memcpy(last.data(), images + (samples - 1) * elements, last.size());
  for (uint64_t i = samples; i-- > 1;)
    of_two(images + i * elements, images + mixed_with(i, samples) * elements);
  of_two(images, reinterpret_cast<const T*>(last.data()));
}

}  // namespace

BatchMix draw_mix(const MixRule& rule, uint64_t stream, uint32_t height, uint32_t width) {
  const uint64_t key = stream_key({stream, kMixStream});
  const bool is_cut = rule.mixup == 0 || (rule.cutmix > 0 && unit(key, kKind) < 0.5);
  const double share = draw_beta(stream_key({key, kShare}), is_cut ? rule.cutmix : rule.mixup);
  if (is_cut) return draw_cut(key, share, height, width);
  const float rounded = share_of(share);
  return {.shares = {rounded, rounded}};
}

void BatchMixer::cut_bytes(const BatchMix& mix, uint32_t samples, uint8_t* images) {
  if (!mix.cuts()) return;
  for_every_two(images, samples, shape_.elements(), last_,
                [&](uint8_t* own, const uint8_t* other) { cut(mix, shape_, own, other); });
}

void BatchMixer::mix_floats(const BatchMix& mix, uint32_t samples, float* images) {
  const uint64_t elements = shape_.elements();
  if (!mix.cuts() && mix.shares.pixels == 1) return;
  for_every_two(images, samples, elements, last_, [&](float* own, const float* other) {
    if (mix.cuts())
      cut(mix, shape_, own, other);
    else
      add_other(own, other, elements, mix.shares.pixels);
  });
}

MixShares BatchMixer::mix(uint64_t first_stream, uint32_t samples, std::byte* images) {
  if (rule_.is_empty() || samples < 2) return {};
  const BatchMix mix = draw_mix(rule_, first_stream, shape_.height, shape_.width);
  if (is_of_bytes_)
    cut_bytes(mix, samples, reinterpret_cast<uint8_t*>(images));
  else
    mix_floats(mix, samples, reinterpret_cast<float*>(images));
  return mix.shares;
}

}  // namespace lockstep::data
