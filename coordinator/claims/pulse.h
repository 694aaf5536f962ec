// Whether a run has a coordinator, for agents that cannot reach it: one small file in the run
// directory that the coordinator rewrites every kPulseMs (PROTOCOL, "Coordinator death").
//
//   RUN_DIR/pulse = "7 1234 alive\n"      term, count, state
//                   "7 1235 ended 75\n"   its last act in a run that ended in order
//
// An agent that has no connection, and for which neither pulse nor newest claim (claim.h) changed
// for kStillMs of its own time, takes the coordinator's machine for lost. Its own time: what passed
// while the agent itself was stopped does not count. No clock of two machines is compared.
//
// Thread-safety: free functions and values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "comm/base/ids.h"
#include "comm/base/status.h"

namespace lockstep::coordinator {

inline constexpr char kPulseName[] = "pulse";
inline constexpr int64_t kPulseMs = 5'000;      // between two beats
inline constexpr int64_t kPulseLookMs = 1'000;  // between two looks of an agent
inline constexpr int64_t kStillMs = 30'000;     // then nobody is there any more

struct Pulse {
  Term term = 0;
  uint64_t count = 0;
  std::optional<int> exit_code;  // of a run that has ended
  bool operator==(const Pulse&) const = default;
};

// Readers see the old or the new one. Not durable: after a power cut there is no coordinator.
Status write_pulse(const std::string& run_dir, const Pulse& pulse);

// None when there is none, or nothing that could be one.
std::optional<Pulse> read_pulse(const std::string& run_dir);

// What an agent without a connection makes of what it sees. Pure.
class PulseWatch {
 public:
  enum class Verdict { kWait, kLost, kEnded };

  Verdict see(const std::optional<Pulse>& pulse, Term newest_claim, int64_t now_ms);
  // It has a connection again, or has done something about it.
  void forget() { last_look_ms_.reset(); }

 private:
  std::optional<Pulse> pulse_;
  Term newest_claim_ = 0;
  std::optional<int64_t> last_look_ms_;
  int64_t still_ms_ = 0;
};

}  // namespace lockstep::coordinator
