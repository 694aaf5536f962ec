#include "data/read/job_order.h"

namespace lockstep::data {

BlockShuffle block_shuffle(const wire::DataSpec& data) {
  if (data.shuffle() != "block") return {};  // of a run from before the key was there: empty
  return {data.block_samples(), data.window_blocks()};
}

OrderSpec job_order(const wire::JobSpec& job, const Dataset& train) {
  return {job.seed(), train.fingerprint(), train.samples(), block_shuffle(job.data())};
}

}  // namespace lockstep::data
