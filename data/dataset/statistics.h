// Mean and deviation by channel. Statistics of images sum integers only, so every machine gets the
// same ones. Statistics of table rows sum float64 in one fixed order.
//
// Thread-safety: pure functions over memory that does not change. stored_statistics() is not pure:
// call it from any thread and process.
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
// Adds one image. REQUIRES: `sums` has an entry for each channel.
void add_image(const uint8_t* image, const SampleShape& shape, std::vector<ChannelSums>& sums);
ChannelStatistics statistics_of(const ChannelSums& sums);

// Statistics of table rows, by column, in float64 and in the order of the rows. A column with a
// single value gets this value as the mean and deviation 0. kBadData, naming the row but not the
// file, if a value is not a finite number. REQUIRES: records.shape.is_row.
Result<std::vector<ChannelStatistics>> row_statistics(const Records& records);

// Reads the statistics stored under `key` from `cache_dir`, or computes and stores them. `key` is
// the fingerprint and, if it matters, how the data are looked at. Ignores a stored file that fails
// its checks. If the file cannot be written, the only cost is computing again. Empty if `compute`
// returns nothing.
std::vector<ChannelStatistics> stored_statistics(
    const std::string& key, uint32_t channels, const std::string& cache_dir,
    const std::function<std::vector<ChannelSums>()>& compute);

}  // namespace lockstep::data
