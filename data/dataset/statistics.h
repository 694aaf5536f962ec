// Mean and deviation by channel. Those of images sum integers only, so that they are the same on
// every machine; those of rows of a table sum float64 in one order.
//
// Thread-safety: pure functions over memory that nobody writes, but stored_statistics(): any thread
// and process.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "comm/base/status.h"
#include "data/dataset/channel_statistics.h"
#include "data/dataset/records.h"

namespace lockstep::data {

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
