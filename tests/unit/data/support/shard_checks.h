// Checks for tests of shards.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "comm/base/limits.h"
#include "data/formats/images/extent_index.h"
#include "tests/unit/data/support/image_writer.h"

namespace lockstep::data {

// The samples' images as they lie in the shard, and their labels.
struct SeenSample {
  std::string image;
  uint32_t label = 0;
  bool operator==(const SeenSample&) const = default;
};

inline std::vector<SeenSample> seen_in(const std::string& shard,
                                       const std::vector<Extent>& extents) {
  std::vector<SeenSample> seen;
  for (const Extent& e : extents) seen.push_back({shard.substr(e.offset, e.bytes), e.label});
  return seen;
}

using ParseShard = std::function<Result<std::vector<Extent>>(std::span<const uint8_t>)>;

// Returns the error's message, or "" if the samples were taken. A sample beyond the shard has a
// text of its own.
inline std::string said_of(const ParseShard& parse, const std::string& shard) {
  const auto samples = parse(span_of(shard));
  if (!samples.is_ok()) return samples.status().message();
  for (const Extent& e : *samples)
    if (e.offset > shard.size() || e.bytes > shard.size() - e.offset || e.label > limits::kLabel)
      return "TAKEN, but beyond the shard";
  return "";
}

// Cut off anywhere, and with every byte made another in turn.
inline void expect_no_damage_is_taken_for_more(const ParseShard& parse, const std::string& shard) {
  for (size_t n = 0; n < shard.size(); ++n)
    EXPECT_NE(said_of(parse, shard.substr(0, n)), "TAKEN, but beyond the shard") << n;
  for (size_t i = 0; i < shard.size(); ++i) {
    std::string damaged = shard;
    for (const int flip : {0x01, 0x80, 0xff}) {
      damaged[i] = static_cast<char>(shard[i] ^ flip);
      EXPECT_NE(said_of(parse, damaged), "TAKEN, but beyond the shard") << i << " " << flip;
    }
  }
}

}  // namespace lockstep::data
