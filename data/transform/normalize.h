// Turns bytes into the floats a model sees: the end of data.transforms (transform_list.h), compiled
// to a table.
//
// A byte x becomes x/255 in [0, 1]; with "normalize", (x/255 - mean) / std of its channel. A
// channel has only 256 values. Each is computed once in single precision, as PyTorch computes it,
// so the bits depend on neither the instruction set nor the code path.
//
// Thread-safety: immutable after create(); all calls from any thread.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "comm/base/status.h"
#include "data/dataset/channel_statistics.h"

namespace lockstep::data {

// The constants of a run's (x - mean) / std, in single precision.
struct NormalizeScale {
  float mean = 0;
  float std = 1;
};

// A channel without any variation stays at 0 instead of becoming infinite.
NormalizeScale normalize_scale(const ChannelStatistics& channel);

class Transform {
 public:
  // `statistics`: by channel, of the training data, for every split. kUsage for words that
  // parse_transforms() refuses. Only the word `normalize` matters here.
  static Result<Transform> create(const std::vector<std::string>& names,
                                  const std::vector<ChannelStatistics>& statistics);

  // One sample, as stored, (C, H, W) or (H, W, C), to (C, H, W) floats. REQUIRES: shape.channels as
  // at create().
  void apply(const uint8_t* sample, const SampleShape& shape, float* out) const;

  // One row of a table, float32 as stored, at any address: each column x, or (x - mean) / std.
  void apply_row(const uint8_t* row, float* out) const;

  // By channel, the float of every byte, for code that looks the floats up elsewhere.
  using Table = std::array<float, 256>;
  const std::vector<Table>& tables() const { return tables_; }

 private:
  std::vector<Table> tables_;           // by channel
  std::vector<NormalizeScale> scales_;  // by channel, for values that are not bytes
};

}  // namespace lockstep::data
