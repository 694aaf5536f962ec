// Announces the samples of coming batches, where they are far away: the order is known to the end
// of the run, so what will be needed is fetched before it is.
//
// INVARIANT: of samples that were announced and whose batches are not used there are at most
// ahead_bytes() of their source, and the batch that goes beyond it.
//
// Thread-safety: of the loader's thread.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>

#include "data/index/dataset.h"
#include "data/order/epoch_order.h"
#include "data/read/loader.h"

namespace lockstep::data {

class LookAhead {
 public:
  // Both outlive it. Of data that are here it does nothing.
  LookAhead(const Dataset& dataset, const LoaderOptions& options)
      : dataset_(dataset),
        options_(options),
        step_(options.first_step),
        slot_(options.slots.begin) {}

  // Announces as much as may be.
  void go_on();
  // The next batch, as the loader counts them, has been read.
  void has_used_one();

 private:
  bool is_at_end() const {
    return step_ >= options_.end_step || options_.slots.begin == options_.slots.end;
  }
  void announce_one();

  const Dataset& dataset_;
  const LoaderOptions& options_;
  Step step_;      // of the next batch
  uint32_t slot_;  // likewise
  std::optional<EpochOrder> order_;
  std::optional<Epoch> order_epoch_;
  std::deque<uint64_t> ahead_;  // bytes of each batch that is announced and not used
  uint64_t ahead_bytes_ = 0;
};

}  // namespace lockstep::data
