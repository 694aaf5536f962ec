// The scores of one part of the batches, as a process for that part writes them, and their sum over
// all parts: joined() adds doubles batch by batch in the order of batches, as an evaluation of the
// run does. So the figures have the same bits for any parts.
//
// Thread-safety: values and pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "comm/base/status.h"
#include "worker/inference/scores.h"

namespace lockstep {

struct PartScores {
  Scores scores;  // of the part; without `sums`
  std::vector<ScoreSums> batches;
};

// JSON; doubles by their bits.
std::string part_text(const PartScores& part);
// kInternal for a text that part_text() did not write.
Result<PartScores> parse_part(std::string_view text);

// The scores of all parts, in their order. REQUIRES: there is a part, and all parts are of one
// model and one data set.
Scores joined(const std::vector<PartScores>& parts);

}  // namespace lockstep
