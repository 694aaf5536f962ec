// The activity of the training thread; the program turns it into metrics.
// Thread-safety: checkpoint_written() from any thread, the rest on the training thread.
#pragma once

#include <cstdint>
#include <span>

#include "comm/base/ids.h"
#include "comm/collectives/reduction_tree.h"
#include "comm/wire/control.pb.h"

namespace lockstep {

// A member's part of a generation.
struct MemberPart {
  uint32_t rank = 0;
  uint32_t world = 0;
  SlotRun slots;
};

class RunnerProbe {
 public:
  enum class Activity { kIdle, kRecovery, kStep, kEval, kCheckpoint };

  virtual ~RunnerProbe() = default;
  virtual void doing(Activity) {}
  virtual void generation_started(Generation, MemberId, const MemberPart&) {}
  // `bucket_bounds`: of the buckets that were reduced in this step, in elements.
  virtual void step_applied(const wire::StepRecord&, std::span<const uint64_t> /*bucket_bounds*/) {}
  virtual void evaluated(const wire::EvalReport&) {}
  virtual void checkpoint_written(const wire::CheckpointReport&) {}
};

}  // namespace lockstep
