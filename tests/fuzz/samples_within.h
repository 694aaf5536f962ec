// Properties of the samples of any shard, whatever its bytes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "comm/base/check.h"
#include "comm/base/limits.h"
#include "comm/base/status.h"
#include "data/formats/images/extent_index.h"

namespace lockstep::data {

inline void check_samples_within(const Result<std::vector<Extent>>& samples,
                                 std::span<const uint8_t> shard) {
  if (!samples.is_ok()) {
    LOCKSTEP_CHECK(samples.status().code() == Code::kBadData, "damage is bad data");
    return;
  }
  for (const Extent& sample : *samples)
    LOCKSTEP_CHECK(sample.offset <= shard.size() && sample.bytes <= shard.size() - sample.offset &&
                       sample.label <= limits::kLabel && sample.width > 0,
                   "a sample lies within its shard");
}

}  // namespace lockstep::data
