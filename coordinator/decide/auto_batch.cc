#include "coordinator/decide/auto_batch.h"

#include <algorithm>
#include <bit>

#include "comm/base/check.h"
#include "comm/base/limits.h"
#include "comm/wire/predictions.h"
#include "coordinator/decide/decide_internal.h"
#include "coordinator/state/identity.h"

namespace lockstep::coordinator {

uint64_t auto_global_batch(const AutoBatchLimits& given) {
  LOCKSTEP_CHECK(given.slots > 0 && !given.largest.empty(), "somebody has measured");
  const uint64_t room = *std::min_element(given.largest.begin(), given.largest.end());
  const uint64_t for_steps = given.samples / (kLeastStepsAnEpoch * given.slots);
  const uint64_t slot = std::min({room, limits::kAutoSlotSamples, for_steps});
  return given.slots * std::max(std::bit_floor(slot), given.smallest);
}

namespace {

// Batch normalization of a single value is refused; a model from a file may have some.
uint64_t smallest_slot(const wire::ModelSpec& model) {
  return model.batch_norm() || is_from_file(model) ? 2 : 1;
}

}  // namespace

Reason resolve_global_batch(Turn& turn, const std::vector<MemberId>& members) {
  State& state = turn.state;
  std::vector<uint64_t> largest;
  for (MemberId id : members) largest.push_back(turn.at(id).largest_slot);
  const size_t least =
      static_cast<size_t>(std::min_element(largest.begin(), largest.end()) - largest.begin());
  const uint32_t slots = turn.options.shape.slots;
  wire::JobSpec job = turn.options.job;
  const uint64_t samples = turn.options.shape.samples;
  const uint64_t batch = auto_global_batch({slots, samples, smallest_slot(job.model()), largest});
  const uint64_t steps = (samples + batch - 1) / batch;
  job.mutable_train()->set_global_batch(batch);
  for (const IdentityEntry& entry : identity_of(job, turn.options.facts)) turn.persist(entry);
  state.is_identity_stored = true;
  turn.note(LogLine::Level::kInfo, "global_batch",
            "train.global_batch auto is " + std::to_string(batch) +
                " from now on: " + counted(slots, "slot") + " of " + std::to_string(batch / slots) +
                ", " + counted(steps, "step") + " an epoch" +
                (steps < kLeastStepsAnEpoch
                     ? " and no more, because a slot cannot be smaller: take fewer slots"
                     : "") +
                "; " + describe(state, turn.at(members[least])) + " has room for " +
                std::to_string(largest[least]) + ", the least");
  return end_term(turn, "the global batch is resolved; the run begins with it",
                  LogLine::Level::kInfo);
}

}  // namespace lockstep::coordinator
