#include "worker/script/slot_task.h"

#include "comm/base/prng.h"

namespace lockstep {

uint32_t slot_seed(uint64_t run_seed, Step step, uint32_t slot) {
  return fold32(
      stream_key({static_cast<uint64_t>(StreamKind::kDropout), run_seed, step, uint64_t{slot}}));
}

ls_task task_of(const RunShape& shape, uint64_t run_seed, Step step, uint32_t slot,
                uint64_t samples) {
  const StepPlan plan = plan_step(shape, step);
  const PositionRange range = slot_positions(plan, slot, shape.slots);
  return {.step = step,
          .epoch = plan.epoch,
          .begin = range.begin,
          .end = range.end,
          .step_samples = samples,
          .slot = slot,
          .seed = slot_seed(run_seed, step, slot),
          .turn = plan.turn};
}

}  // namespace lockstep
