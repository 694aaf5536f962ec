// Thread-safety: a value.
#pragma once

namespace lockstep::data {

// One channel over all samples, its values scaled to [0, 1]; or one column, its values as they are.
struct ChannelStatistics {
  double mean = 0;
  double std = 0;  // of the population
  bool operator==(const ChannelStatistics&) const = default;
};

}  // namespace lockstep::data
