// A Collective whose small operations are noted in a flight record. Its sums are not: the reducer
// notes them, which knows when they are queued (worker/engine/step_reducer.h).
//
// Thread-safety: as the inner one's.
#pragma once

#include <memory>
#include <utility>

#include "comm/collectives/flight_record.h"
#include "comm/collectives/forwarding.h"

namespace lockstep {

class RecordedCollective final : public Forwarding<Collective> {
 public:
  // `record` outlives the Collective.
  RecordedCollective(std::unique_ptr<Collective> inner, FlightRecord& record)
      : Forwarding(std::move(inner)), record_(record) {}

  Status begin_step(const Tag& tag, const StepMerge& merge) override {
    Flight flight(&record_, FlightOperation::kBeginStep, place_of(tag));
    return flight.ended(Forwarding::begin_step(tag, merge));
  }
  Status broadcast(const Tag& tag, std::span<std::byte> data, uint32_t root) override {
    Flight flight(&record_, FlightOperation::kBroadcast, place_of(tag));
    return flight.ended(Forwarding::broadcast(tag, data, root));
  }
  Status all_gather(const Tag& tag, std::span<const std::byte> mine,
                    std::span<std::byte> all) override {
    Flight flight(&record_, FlightOperation::kGather, place_of(tag));
    return flight.ended(Forwarding::all_gather(tag, mine, all));
  }
  Status barrier(const Tag& tag) override {
    Flight flight(&record_, FlightOperation::kBarrier, place_of(tag));
    return flight.ended(Forwarding::barrier(tag));
  }

 private:
  static FlightPlace place_of(const Tag& tag) { return {tag.generation, tag.step, tag.bucket}; }

  FlightRecord& record_;
};

}  // namespace lockstep
