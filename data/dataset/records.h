// The logical records of a dataset of fixed-size samples, wherever they lie, and what is computed
// over all of them: fingerprint and statistics.
//
// Both read integers only and sum integers only, so they are the same on every machine; of rows of
// a table the statistics are of floating point, summed in one order.
//
// Thread-safety: pure functions over memory that nobody writes.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "comm/base/hash.h"
#include "data/dataset/dataset.h"

namespace lockstep::data {

struct Records {
  std::string format;
  uint64_t samples = 0;
  SampleShape shape;
  // Where the samples lie, file after file; with what lies between them.
  std::vector<std::span<const uint8_t>> content;
  // Of sample i: its shape.stored_bytes(), somewhere in `content`, and its label.
  std::function<const uint8_t*(uint64_t)> sample;
  std::function<uint32_t(uint64_t)> label;
};

// Hashes all of `content` up to `whole_bytes`, beyond that the first and last block and 16 between,
// at places drawn from the size.
inline constexpr uint64_t kWholeContentBytes = uint64_t{1} << 30;
void hash_sampled(std::span<const uint8_t> content, uint64_t whole_bytes, Xxh3& hash);
// The same of content that lies in pieces: `add` hashes so many bytes from an offset on.
using AddContentFn = std::function<void(uint64_t offset, uint64_t bytes)>;
void hash_sampled(uint64_t bytes, const AddContentFn& add, uint64_t whole_bytes);

// XXH3-128 over format, counts, shape, labels and content, this by hash_sampled(). Images stored
// channels-last are other records than the same ones channels-first.
std::string fingerprint_of(const Records& records, uint64_t whole_bytes = kWholeContentBytes);

// Exact sums over all values of one channel.
struct ChannelSums {
  uint64_t values = 0;
  uint64_t sum = 0;
  uint64_t sum_of_squares = 0;
  bool operator==(const ChannelSums&) const = default;
  void add(const ChannelSums& other) {
    values += other.values;
    sum += other.sum;
    sum_of_squares += other.sum_of_squares;
  }
};
std::vector<ChannelSums> sums_of(const Records& records);
// Adds one image. REQUIRES: as many sums as it has channels.
void add_image(const uint8_t* image, const SampleShape& shape, std::vector<ChannelSums>& sums);
ChannelStatistics statistics_of(const ChannelSums& sums);

// Of rows of a table, by column, in float64 and in the order of the rows; of a column with one
// value that value and 0. kBadData for what is no finite number, saying in which row; messages do
// not name the file. REQUIRES: records.shape.is_row.
Result<std::vector<ChannelStatistics>> row_statistics(const Records& records);

// The statistics of what has this key, its fingerprint and, where that matters, how it is looked
// at: from `cache_dir`, or computed and stored there. A stored file that does not check out is
// ignored; one that cannot be written costs nothing but the time to compute it again. Nothing where
// `compute` gives nothing.
std::vector<ChannelStatistics> stored_statistics(
    const std::string& key, uint32_t channels, const std::string& cache_dir,
    const std::function<std::vector<ChannelSums>()>& compute);

}  // namespace lockstep::data
