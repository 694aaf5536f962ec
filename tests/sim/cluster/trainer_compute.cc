// A worker's computations in a step: its slots' contributions, and values that it computes again
// for the comparison with others.
#include <algorithm>
#include <utility>

#include "comm/base/prng.h"
#include "comm/collectives/cross_check.h"
#include "comm/run/evaluation/check_after.h"
#include "tests/sim/cluster/trainer.h"

namespace lockstep::sim {

SlotRun Trainer::slots_of(const Life& life, uint32_t rank) const {
  const auto& slots = life.order.start.members(static_cast<int>(rank)).slots();
  return {slots.begin(), slots.end()};
}

bool Trainer::is_active(const Life& life, uint32_t slot) const {
  return !life.skips.contains(state_.step, slot);
}

// kResult strikes after a step. Other damage strikes before one, so that what was compared and
// written of the step before is right.
void Trainer::take_damage(bool is_after_step) {
  if (!damage_ || (*damage_ == Damage::kResult) != is_after_step) return;
  const auto what = std::exchange(damage_, std::nullopt);
  world_.trace.add("damaged", parts_.process.name(), static_cast<uint64_t>(*what), state_.step);
  world_.damaged[parts_.place] = *what;
  world_.was_damaged.insert(parts_.place);
  if (*what == Damage::kWeights || *what == Damage::kResult) state_.hash ^= uint64_t{1} << 40;
  if (*what == Damage::kGradients) bad_gradients_ = 1;
  if (*what == Damage::kSums) bad_sums_ = 1;
}

uint64_t Trainer::contribution_of(uint32_t slot, uint32_t bucket, uint32_t element) {
  const uint64_t right = contribution(state_, slot, bucket, element);
  return bad_gradients_ == 0 ? right : right ^ bad_gradients_++;
}

// The deadly slot that this worker computes, or that its loader reads some steps ahead.
std::optional<SlotInHand> Trainer::deadly_slot(const Life& life) const {
  const SlotRun slots = slots_of(life, life.rank);
  const Step end =
      std::min<Step>(state_.step + world_.options.read_ahead + 1, life.order.start.total_steps());
  for (Step step = state_.step; step < end; ++step) {
    for (uint32_t slot = slots.begin; slot < slots.end; ++slot) {
      if (world_.kills(step, slot) && !life.skips.contains(step, slot))
        return SlotInHand{step, slot, step > state_.step};
    }
  }
  return std::nullopt;
}

// Computes one bucket. The time grows with the number of slots and the place's slowness. A sample
// may kill its reader.
Task<Status> Trainer::compute_slots(const Life& life) {
  const SlotRun slots = slots_of(life, life.rank);
  int64_t ms = 1;
  for (uint32_t slot = slots.begin; slot < slots.end; ++slot) {
    if (!is_active(life, slot)) continue;
    ms += world_.slot_ms(parts_.place);
    parts_.in_hand.slots = {{state_.step, slot}};
    if (world_.raises != state_.step) continue;
    co_await waiter_.sleep(ms);
    co_return Status(Code::kRaised, "the script failed: KeyError: 'conf'\nTraceback");
  }
  if (const auto deadly = deadly_slot(life)) {
    world_.trace.add("killed by a sample", parts_.process.name(), deadly->step, deadly->slot);
    ++world_.victims;
    parts_.in_hand.slots.insert(parts_.in_hand.slots.begin(), *deadly);
    parts_.die();
    const std::function<bool()> never = [] { return false; };
    co_await waiter_.until(never);
  }
  co_await waiter_.sleep(ms);
  busy_ms_ += ms;
  co_return Status::ok();
}

Segment::Partial Trainer::partial_of(const Life& life, uint32_t bucket) {
  Segment::Partial partial;
  const SlotRun slots = slots_of(life, life.rank);
  const bool is_last = bucket + 1 == kBuckets;
  bool has_work = false;
  for (uint32_t slot = slots.begin; slot < slots.end; ++slot) {
    if (!is_active(life, slot)) continue;
    for (uint32_t element = 0; element < kElements; ++element)
      partial.slots[slot][element] = contribution_of(slot, bucket, element);
    if (is_last) partial.digests[slot] = world_.digest_of(state_.step, slot);
    has_work = true;
  }
  // All slots vote, so a rank whose slots are empty has none (worker/script/script_engine.h, Y4).
  partial.votes.finish = !has_work || world_.votes_to_end(parts_.process.name(), state_.step);
  // A rank without slots has no say (worker/engine/step_reducer.cc).
  const bool has_say = slots.begin < slots.end;
  partial.votes.stop = !has_say || wants_stop_;
  partial.votes.change = !has_say || has_plan_for(life.order.generation);
  return partial;
}

// The same plan as worker/engine/self_check.cc makes.
std::optional<Trainer::Check> Trainer::plan_check(const Life& life) const {
  const Step last = life.order.start.total_steps();
  const auto turn = check_after(state_.step + 1, world_.job, life.plan.possible_ends(last));
  const auto ranks = static_cast<uint32_t>(life.order.start.members_size());
  if (!turn) return std::nullopt;
  Check check;
  check.slot = static_cast<uint32_t>(*turn % world_.shape.slots);
  while (check.slot >= slots_of(life, check.slot_owner).end) ++check.slot_owner;
  check.bucket = static_cast<uint32_t>(*turn % kBuckets);
  check.sum_owner = static_cast<uint32_t>(*turn / kBuckets % ranks);
  return check;
}

uint64_t Trainer::gradient_hash(uint32_t slot) {
  uint64_t hash = 1;
  for (uint32_t bucket = 0; bucket < kBuckets; ++bucket)
    for (uint32_t element = 0; element < kElements; ++element)
      hash = mix64(hash ^ contribution_of(slot, bucket, element));
  return hash;
}

wire::CheckReport Trainer::check_report(const Life& life, const Check& check,
                                        const Collective::Reduced& reduced) {
  wire::CheckReport report;
  const uint32_t ranks = life.collective->world_size();
  if (is_active(life, check.slot) && takes_part(life.rank, check.slot_owner, ranks)) {
    report.set_has_gradient(true);
    report.set_slot(check.slot);
    report.set_gradient_hash(gradient_hash(check.slot));
  }
  if (reduced.checked_sum) {
    report.set_has_sum(true);
    report.set_sum_rank(check.sum_owner);
    report.set_sum_hash(*reduced.checked_sum);
  }
  if (ranks == 1 && report.has_gradient()) {
    report.set_has_again(true);
    report.set_again_hash(gradient_hash(check.slot));
  }
  return report;
}

// As Runner::compare_weights().
void Trainer::compare_weights(const Life& life, bool before_edge) {
  if (world_.job.train().check_every() == 0) return;
  if (life.order.start.members_size() == 1) return;
  wire::CheckReport report;
  report.set_applied(state_.step);
  report.set_weights_hash(state_.hash);
  say_check(life, std::move(report), before_edge);
}

// As Runner::report_check().
void Trainer::say_check(const Life& life, wire::CheckReport report, bool before_edge) {
  if (before_edge)
    held_check_ = std::move(report);
  else
    parts_.port.report_check(life.order.generation, std::move(report));
}

}  // namespace lockstep::sim
