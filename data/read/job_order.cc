#include "data/read/job_order.h"

namespace lockstep::data {

BlockShuffle block_shuffle(const wire::DataSpec& data) {
  if (data.shuffle() != "block") return {};  // of a run from before the key was there: empty
  return {data.block_samples(), data.window_blocks()};
}

OrderSpec job_order(const wire::JobSpec& job, const Dataset& train) {
  const auto parts = train.parts();
  return {job.seed(), train.fingerprint(), epoch_units(train), block_shuffle(job.data()),
          std::vector(parts.begin(), parts.end())};
}

}  // namespace lockstep::data
