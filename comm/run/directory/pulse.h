// Shows agents that cannot reach the coordinator whether it lives: one small file in the run
// directory, which the coordinator rewrites every kPulseMs (PROTOCOL.md, "Coordinator death").
//
//   RUN_DIR/pulse = "7 1234 alive\n"      term, count, state
//                   "7 1235 ended 75\n"   its last act in a run that ended in order
//
// An agent takes the coordinator's machine for lost if it has no connection, and if neither the
// pulse nor the newest claim (claim.h) has changed for kStillMs of the agent's own time. Time while
// the agent itself was stopped does not count. Nothing compares the clocks of two machines.
//
// Thread-safety: free functions and values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "comm/base/ids.h"
#include "comm/base/status.h"

namespace lockstep {

inline constexpr int64_t kPulseMs = 5'000;      // between two beats
inline constexpr int64_t kPulseLookMs = 1'000;  // between two looks of an agent
inline constexpr int64_t kStillMs = 30'000;     // after so long without a change it is lost

struct Pulse {
  Term term = 0;
  uint64_t count = 0;
  std::optional<int> exit_code;  // of a run that has ended
  bool operator==(const Pulse&) const = default;
};

// Readers see the old or the new pulse. Not durable: after a power cut there is no coordinator.
Status write_pulse(const std::string& run_dir, const Pulse& pulse);

// None if the file does not exist or is not a pulse.
std::optional<Pulse> read_pulse(const std::string& run_dir);

// Judges the pulse for an agent without a connection. Pure.
class PulseWatch {
 public:
  enum class Verdict { kWait, kLost, kEnded };

  Verdict see(const std::optional<Pulse>& pulse, Term newest_claim, int64_t now_ms);
  // Call it when the agent has a connection again, or has acted on a verdict.
  void forget() { last_look_ms_.reset(); }

 private:
  std::optional<Pulse> pulse_;
  Term newest_claim_ = 0;
  std::optional<int64_t> last_look_ms_;
  int64_t still_ms_ = 0;
};

}  // namespace lockstep
