#include "comm/run/plan/step_plan.h"

#include <algorithm>
#include <limits>

#include "comm/base/check.h"

namespace lockstep {
namespace {

__extension__ using Wide = unsigned __int128;

// floor(i * n / parts); i * n may need more than 64 bits.
uint64_t share(uint64_t i, uint64_t n, uint64_t parts) {
  return static_cast<uint64_t>(Wide{i} * n / parts);
}

void check_shape(const RunShape& shape) {
  LOCKSTEP_CHECK(shape.samples > 0 && shape.global_batch > 0 && shape.slots > 0 && shape.turns > 0,
                 "a run needs samples, a global batch, slots and turns");
}

uint64_t batches_per_epoch(const RunShape& shape) {
  check_shape(shape);
  return (shape.samples - 1) / shape.global_batch + 1;
}

}  // namespace

uint64_t steps_per_epoch(const RunShape& shape) {
  return batches_per_epoch(shape) * shape.turns;
}

StepPlan plan_step(const RunShape& shape, Step step) {
  const uint64_t steps = steps_per_epoch(shape);
  LOCKSTEP_CHECK(step / steps <= std::numeric_limits<Epoch>::max(), "step beyond the last epoch");
  StepPlan plan;
  plan.epoch = static_cast<Epoch>(step / steps);
  plan.step_in_epoch = step % steps;
  plan.turn = static_cast<uint32_t>(step % shape.turns);
  plan.begin = plan.step_in_epoch / shape.turns * shape.global_batch;
  plan.samples = std::min(shape.global_batch, shape.samples - plan.begin);
  plan.last_of_batch = plan.turn + 1 == shape.turns;
  plan.last_of_epoch = plan.step_in_epoch + 1 == steps;
  return plan;
}

PositionRange slot_positions(const StepPlan& plan, uint32_t slot, uint32_t slots) {
  LOCKSTEP_CHECK(slot < slots, "slot number beyond the slots of the run");
  return {plan.begin + share(slot, plan.samples, slots),
          plan.begin + share(uint64_t{slot} + 1, plan.samples, slots)};
}

std::vector<bool> non_empty_slots(const StepPlan& plan, uint32_t slots) {
  std::vector<bool> non_empty(slots);
  for (uint32_t slot = 0; slot < slots; ++slot)
    non_empty[slot] = slot_positions(plan, slot, slots).size() > 0;
  return non_empty;
}

uint64_t max_slot_samples(const RunShape& shape) {
  check_shape(shape);
  // floor((i+1)n/V) - floor(in/V) is at most ceil(n/V), and grows with n.
  return (std::min(shape.global_batch, shape.samples) - 1) / shape.slots + 1;
}

Step first_turn(const RunShape& shape, Step step) {
  return step - step % shape.turns;
}

bool falls_due(uint64_t every, Step applied, uint32_t turns) {
  if (every == 0 || applied < turns || applied % turns != 0) return false;
  return applied / every != (applied - turns) / every;
}

uint64_t total_steps(const RunShape& shape, uint32_t epochs, uint64_t max_steps) {
  constexpr uint64_t kMost = std::numeric_limits<uint64_t>::max();
  const Wide by_epochs = Wide{epochs} * steps_per_epoch(shape);
  const uint64_t limit = by_epochs > kMost ? kMost : static_cast<uint64_t>(by_epochs);
  const Wide whole = (Wide{max_steps} + shape.turns - 1) / shape.turns * shape.turns;
  const uint64_t most = whole > kMost ? kMost : static_cast<uint64_t>(whole);
  if (epochs == 0) return most;
  return most == 0 ? limit : std::min(limit, most);
}

}  // namespace lockstep
