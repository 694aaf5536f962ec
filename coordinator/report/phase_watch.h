// Where the time of each member's newest steps went, for people, in bounded memory. The window has
// kWindowSteps steps or kWindowUs of the member's time, whichever is shorter, up to twice as much.
//
// Thread-safety: one thread.
#pragma once

#include <array>
#include <cstdint>
#include <map>

#include "comm/base/ids.h"
#include "comm/wire/control.pb.h"

namespace lockstep::coordinator {

// In the order of wire::PhaseTimes.
inline constexpr std::array<const char*, 6> kStepPhases = {"data_wait",     "forward",   "backward",
                                                           "communication", "optimizer", "other"};
inline constexpr size_t kDataWaitPhase = 0;
inline constexpr size_t kCommunicationPhase = 3;

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
  static constexpr uint64_t kWindowSteps = 500;
  static constexpr uint64_t kWindowUs = 60'000'000;

  void add(MemberId member, const wire::StepRecord& record);

  PhaseSums of(MemberId member) const;
  PhaseSums all() const;

 private:
  struct Window {
    PhaseSums before;
    PhaseSums now;
  };
  std::map<MemberId, Window> windows_;
};

}  // namespace lockstep::coordinator
