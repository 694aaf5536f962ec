#include "coordinator/decide/auto_batch.h"

#include <algorithm>
#include <bit>

#include "comm/base/check.h"
#include "comm/base/limits.h"
#include "coordinator/decide/decide_internal.h"
#include "coordinator/state/identity.h"

namespace lockstep::coordinator {

uint64_t auto_global_batch(uint32_t slots, uint64_t samples, const std::vector<uint64_t>& largest) {
  LOCKSTEP_CHECK(slots > 0 && !largest.empty(), "somebody has measured");
  uint64_t slot = *std::min_element(largest.begin(), largest.end());
  slot = std::min({slot, limits::kAutoSlotSamples, samples / slots});
  return slots * std::bit_floor(std::max<uint64_t>(slot, 1));
}

Reason resolve_global_batch(Turn& turn, const std::vector<MemberId>& members) {
  State& state = turn.state;
  std::vector<uint64_t> largest;
  for (MemberId id : members) largest.push_back(turn.at(id).largest_slot);
  const size_t least =
      static_cast<size_t>(std::min_element(largest.begin(), largest.end()) - largest.begin());
  const uint32_t slots = turn.options.shape.slots;
  wire::JobSpec job = turn.options.job;
  const uint64_t batch = auto_global_batch(slots, turn.options.shape.samples, largest);
  job.mutable_train()->set_global_batch(batch);
  for (const IdentityEntry& entry : identity_of(job, turn.options.facts)) turn.persist(entry);
  state.is_identity_stored = true;
  turn.note(LogLine::Level::kInfo, "global_batch",
            "train.global_batch auto is " + std::to_string(batch) +
                " from now on: " + counted(slots, "slot") + " of " + std::to_string(batch / slots) +
                "; " + describe(state, turn.at(members[least])) + " has room for " +
                std::to_string(largest[least]) + ", the least");
  return end_term(turn, "the global batch is resolved; the run begins with it",
                  LogLine::Level::kInfo);
}

}  // namespace lockstep::coordinator
