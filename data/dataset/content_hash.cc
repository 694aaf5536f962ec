#include "data/dataset/content_hash.h"

#include <algorithm>
#include <array>

#include "comm/base/hash.h"

namespace lockstep::data {
namespace {

constexpr size_t kLabelsAtOnce = 4096;

void hash_labels(const Records& records, Xxh3& hash) {
  std::array<uint8_t, 4 * kLabelsAtOnce> bytes;
  for (uint64_t begin = 0; begin < records.samples; begin += kLabelsAtOnce) {
    const uint64_t n = std::min<uint64_t>(kLabelsAtOnce, records.samples - begin);
    for (uint64_t i = 0; i < n; ++i) {
      const uint32_t label = records.label(begin + i);
      for (uint64_t k = 0; k < 4; ++k) bytes[4 * i + k] = static_cast<uint8_t>(label >> (8 * k));
    }
    hash.update(bytes.data(), 4 * n);
  }
}

}  // namespace

std::string fingerprint_of(const Records& records, uint64_t whole_bytes) {
  Xxh3 hash;
  hash.update("lockstep records 1\nformat " + records.format + "\nsamples " +
              std::to_string(records.samples) + "\nshape " +
              std::to_string(records.shape.channels) + " " + std::to_string(records.shape.height) +
              " " + std::to_string(records.shape.width) +
              (records.shape.channels_last ? " channels last\n" : "\n"));
  if (records.shape.float_bytes > 0)
    hash.update("floats of " + std::to_string(records.shape.float_bytes) + " bytes, depth " +
                std::to_string(records.shape.depth) + "\n");
  if (records.shape.has_ids())
    hash.update("ids of " + std::to_string(records.shape.id_bytes) + " bytes\n");
  hash_labels(records, hash);
  for (const auto& content : records.content) hash_sampled(content, whole_bytes, hash);
  return hash.hex();
}

}  // namespace lockstep::data
