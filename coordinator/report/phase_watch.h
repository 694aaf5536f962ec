// Sums where the time of each member's steps went lately, for people, in bounded memory.
//
// Thread-safety: one thread.
#pragma once

#include <array>
#include <cstdint>
#include <map>

#include "comm/base/ids.h"
#include "comm/wire/control.pb.h"
#include "coordinator/report/recent_sums.h"

namespace lockstep::coordinator {

// In the order of wire::PhaseTimes.
inline constexpr std::array<const char*, 6> kStepPhases = {"data_wait",     "forward",   "backward",
                                                           "communication", "optimizer", "other"};
inline constexpr size_t kDataWaitPhase = 0;
inline constexpr size_t kForwardPhase = 1;
inline constexpr size_t kBackwardPhase = 2;
inline constexpr size_t kCommunicationPhase = 3;
inline constexpr size_t kOptimizerPhase = 4;

struct PhaseSums {
  uint64_t steps = 0;
  uint64_t samples = 0;  // of the whole steps, over all ranks
  std::array<uint64_t, kStepPhases.size()> us{};

  void add(const PhaseSums& other);
  uint64_t total_us() const;
  // Without the time in which it waited for others.
  uint64_t own_us() const { return total_us() - us[kCommunicationPhase]; }
};

class PhaseWatch {
 public:
  void add(int64_t now_ms, MemberId member, const wire::StepRecord& record);

  // If no step ended within the span: the last step.
  PhaseSums of(MemberId member, Span span, int64_t now_ms) const;
  PhaseSums all(Span span, int64_t now_ms) const;

 private:
  struct Watched {
    RecentSums<PhaseSums> recent;
    PhaseSums last;
  };
  std::map<MemberId, Watched> members_;
};

}  // namespace lockstep::coordinator
