#include "data/transform/normalize.h"

#include "comm/base/check.h"

namespace lockstep::data {
namespace {

constexpr char kNormalize[] = "normalize";

}  // namespace

Status check_transform_names(const std::vector<std::string>& names) {
  bool seen = false;
  for (const std::string& name : names) {
    if (name != kNormalize)
      return Status(Code::kUsage, "unknown transform \"" + name +
                                      "\" in data.transforms; did you mean \"" + kNormalize +
                                      "\", the only one there is?");
    if (seen)
      return Status(Code::kUsage,
                    "data.transforms names \"" + name + "\" twice; leave one of them");
    seen = true;
  }
  return Status::ok();
}

Result<Transform> Transform::create(const std::vector<std::string>& names,
                                    const std::vector<ChannelStatistics>& statistics) {
  LOCKSTEP_RETURN_IF_ERROR(check_transform_names(names));
  Transform transform;
  for (const ChannelStatistics& channel : statistics) {
    const float mean = static_cast<float>(channel.mean);
    // A channel without any variation stays at 0 instead of becoming infinite.
    const float std = channel.std > 0 ? static_cast<float>(channel.std) : 1.0F;
    Table table;
    for (size_t x = 0; x < table.size(); ++x) {
      const float value = static_cast<float>(x) / 255.0F;
      table[x] = names.empty() ? value : (value - mean) / std;
    }
    transform.tables_.push_back(table);
  }
  return transform;
}

void Transform::apply(const uint8_t* sample, const SampleShape& shape, float* out) const {
  LOCKSTEP_CHECK(shape.channels == tables_.size(), "transform made for another number of channels");
  const uint64_t plane = uint64_t{shape.height} * shape.width;
  for (const Table& table : tables_) {
    for (uint64_t i = 0; i < plane; ++i) out[i] = table[sample[i]];
    sample += plane;
    out += plane;
  }
}

}  // namespace lockstep::data
