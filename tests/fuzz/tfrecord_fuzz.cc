// Any bytes as a TFRecord shard: refused, or samples that lie within it. The fuzzer corrects the
// checksums of lengths, because it would not find them.
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "comm/base/crc32c.h"
#include "comm/base/little_endian.h"
#include "data/formats/shards/tf_example.h"
#include "data/formats/shards/tfrecord.h"
#include "tests/fuzz/samples_within.h"

namespace lockstep::data {
namespace {

void put_checksums_right(std::vector<uint8_t>& shard) {
  for (size_t at = 0; shard.size() - at >= 16;) {
    const std::string_view length(reinterpret_cast<const char*>(&shard[at]), 8);
    const uint32_t crc = masked_crc32c(length);
    for (size_t i = 0; i < 4; ++i) shard[at + 8 + i] = static_cast<uint8_t>(crc >> (8 * i));
    const uint64_t bytes = load_le<uint64_t>(&shard[at]);
    if (bytes > shard.size() - at - 16) return;
    at += 16 + bytes;
  }
}

}  // namespace
}  // namespace lockstep::data

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lockstep::data;
  const std::span<const uint8_t> bytes(data, size);
  check_samples_within(samples_of_tfrecord(bytes), bytes);
  std::vector<uint8_t> shard(data, data + size);
  put_checksums_right(shard);
  check_samples_within(samples_of_tfrecord(shard), shard);
  const auto walked = walk_example(bytes, [&](const TfFeature& feature) {
    LOCKSTEP_CHECK(
        feature.text.empty() || (feature.text.data() >= data &&
                                 feature.text.data() + feature.text.size() <= data + size),
        "a feature lies within its example");
    return lockstep::Status::ok();
  });
  LOCKSTEP_CHECK(walked.is_ok() || walked.code() == lockstep::Code::kBadData, "damage is bad data");
  return 0;
}
