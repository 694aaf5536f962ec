// Thread-safety: a value.
#pragma once

namespace lockstep::data {

// One channel over all samples, values scaled to [0, 1]. Or one column, values unscaled.
struct ChannelStatistics {
  double mean = 0;
  double std = 0;  // of the population
  bool operator==(const ChannelStatistics&) const = default;
};

}  // namespace lockstep::data
