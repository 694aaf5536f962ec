#include "data/read/look_ahead.h"

#include "data/source/remote_files.h"

namespace lockstep::data {

void LookAhead::go_on() {
  if (dataset_.far() == nullptr) return;
  while (ahead_bytes_ < dataset_.far()->ahead_bytes()) {
    const auto batch = sequence_.next();
    if (!batch) return;
    const EpochOrder& order = sequence_.order_of(batch->epoch);
    uint64_t bytes = 0;
    for (uint64_t position = batch->range.begin; position < batch->range.end; ++position)
      bytes += dataset_.announce(order.at(position));
    ahead_.push_back(bytes);
    ahead_bytes_ += bytes;
  }
}

void LookAhead::has_used_one() {
  if (ahead_.empty()) return;
  ahead_bytes_ -= ahead_.front();
  ahead_.pop_front();
}

}  // namespace lockstep::data
