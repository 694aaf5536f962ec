// The logical records of a dataset of fixed-size samples, wherever they lie, and what is computed
// over all of them: fingerprint and statistics.
//
// Both read integers only and sum integers only, so they are the same on every machine.
//
// Thread-safety: pure functions over memory that nobody writes.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "comm/base/hash.h"
#include "data/index/dataset.h"

namespace lockstep::data {

struct Records {
  std::string format;
  uint64_t samples = 0;
  SampleShape shape;
  std::span<const uint8_t> pixels;          // samples * shape.elements() bytes
  std::function<uint32_t(uint64_t)> label;  // of sample i
};

// Hashes all of `content` up to `whole_bytes`, beyond that the first and last block and 16 between,
// at places drawn from the size.
inline constexpr uint64_t kWholeContentBytes = uint64_t{1} << 30;
void hash_sampled(std::span<const uint8_t> content, uint64_t whole_bytes, Xxh3& hash);

// XXH3-128 over format, counts, shape, labels and pixels, these by hash_sampled().
std::string fingerprint_of(const Records& records, uint64_t whole_bytes = kWholeContentBytes);

// Exact sums over all values of one channel.
struct ChannelSums {
  uint64_t values = 0;
  uint64_t sum = 0;
  uint64_t sum_of_squares = 0;
  bool operator==(const ChannelSums&) const = default;
};
std::vector<ChannelSums> sums_of(const Records& records);
ChannelStatistics statistics_of(const ChannelSums& sums);

// The statistics of a dataset with this fingerprint: from `cache_dir`, or computed and stored
// there. A stored file that does not check out is ignored; one that cannot be written costs nothing
// but the time to compute it again.
std::vector<ChannelStatistics> stored_statistics(const Records& records,
                                                 const std::string& fingerprint,
                                                 const std::string& cache_dir);

}  // namespace lockstep::data
