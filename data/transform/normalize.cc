#include "data/transform/normalize.h"

#include <cstring>

#include "comm/base/check.h"
#include "data/dataset/channel_statistics.h"
#include "data/dataset/sample_shape.h"
#include "data/transform/transform_list.h"

namespace lockstep::data {
namespace {

// Reads four before it writes the first, since the compiler must assume that bytes may lie in
// `out`. For 3 KB from memory, on an AMD EPYC: 1.3 us instead of 1.7; vector gathers take 1.6.
void apply_table(const Transform::Table& table, const uint8_t* bytes, uint64_t count, float* out) {
  uint64_t i = 0;
  for (; i + 4 <= count; i += 4) {
    const float first = table[bytes[i]];
    const float second = table[bytes[i + 1]];
    const float third = table[bytes[i + 2]];
    const float fourth = table[bytes[i + 3]];
    out[i] = first;
    out[i + 1] = second;
    out[i + 2] = third;
    out[i + 3] = fourth;
  }
  for (; i < count; ++i) out[i] = table[bytes[i]];
}

}  // namespace

NormalizeScale normalize_scale(const ChannelStatistics& channel) {
  return {static_cast<float>(channel.mean),
          channel.std > 0 ? static_cast<float>(channel.std) : 1.0F};
}

Result<Transform> Transform::create(const std::vector<std::string>& names,
                                    const std::vector<ChannelStatistics>& statistics) {
  LOCKSTEP_ASSIGN_OR_RETURN(const TransformList list, parse_transforms(names));
  Transform transform;
  for (const ChannelStatistics& channel : statistics) {
    const auto [mean, std] = normalize_scale(channel);
    Table table;
    for (size_t x = 0; x < table.size(); ++x) {
      const float value = static_cast<float>(x) / 255.0F;
      table[x] = list.normalizes ? (value - mean) / std : value;
    }
    transform.tables_.push_back(table);
    transform.scales_.push_back(list.normalizes ? NormalizeScale{mean, std} : NormalizeScale());
  }
  return transform;
}

void Transform::apply(const uint8_t* sample, const SampleShape& shape, float* out) const {
  LOCKSTEP_CHECK(shape.channels == tables_.size(), "transform made for another number of channels");
  const uint64_t plane = uint64_t{shape.height} * shape.width;
  if (shape.channels_last) {
    // Written in order, read in steps: the sample is in the cache, and `out` is four times as long.
    for (const Table& table : tables_) {
      for (uint64_t i = 0; i < plane; ++i) out[i] = table[sample[i * shape.channels]];
      ++sample;
      out += plane;
    }
    return;
  }
  for (const Table& table : tables_) {
    apply_table(table, sample, plane, out);
    sample += plane;
    out += plane;
  }
}

void Transform::apply_row(const uint8_t* row, float* out) const {
  std::memcpy(out, row, scales_.size() * sizeof(float));
  for (size_t i = 0; i < scales_.size(); ++i) out[i] = (out[i] - scales_[i].mean) / scales_[i].std;
}

}  // namespace lockstep::data
