// Splits the wall time of a worker's training thread into phases.
//
// One thread reports its present phase with switch_to(). All time until the next call counts for
// that phase. So no phase is estimated, and no time is left over.
//
//   init | data_wait | forward | backward | communication | optimizer | data_wait | forward | ...
//   ^ constructor                                                       time ->
//
// Thread-safety: switch_to() and Scope on one thread, snapshot() and current() from any thread.
//
// Invariants:
//  1. In every snapshot the phases add up to the time since construction, to the nanosecond.
//  2. No total falls from one snapshot to a later one.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string_view>
#include <utility>

#include "comm/base/clock.h"

namespace lockstep {

enum class WorkPhase : uint8_t {
  kInit = 0,       // from the start of the process to the first generation
  kIdle,           // waiting for the coordinator: registration, prepare, the last answer
  kDataWait,       // waiting for the next batch
  kCopy,           // batch to tensors, and to the device
  kForward,        // and loss
  kBackward,       // and the communication that it hides
  kCommunication,  // waiting for reduced buckets, after the backward
  kOptimizer,      // gate and apply
  kEval,
  kCheckpoint,
  kRecovery,  // from a close to the next start, with fetching state
  kOther,     // records, bookkeeping
};
inline constexpr size_t kWorkPhases = static_cast<size_t>(WorkPhase::kOther) + 1;

// The value of the label `phase`: "data_wait".
std::string_view phase_name(WorkPhase phase);

struct PhaseTotals {
  std::array<int64_t, kWorkPhases> ns{};

  int64_t of(WorkPhase phase) const { return ns[static_cast<size_t>(phase)]; }
  int64_t sum() const;
  // The phases that compute the model: forward, backward, optimizer.
  int64_t useful() const;
  // The time since an earlier snapshot of the same clock.
  PhaseTotals since(const PhaseTotals& earlier) const;
};

class PhaseClock {
 public:
  // Time from here on counts for `first`. `clock` outlives this object.
  explicit PhaseClock(const Clock& clock, WorkPhase first = WorkPhase::kInit);
  PhaseClock(const PhaseClock&) = delete;
  PhaseClock& operator=(const PhaseClock&) = delete;

  // Called with every phase that ends, on the thread of switch_to(). Call observe() there, too.
  // Empty: no observer.
  using Observer = std::function<void(WorkPhase phase, int64_t begin_ns, int64_t end_ns)>;
  void observe(Observer observer) { observer_ = std::move(observer); }

  // Ends the present phase and begins `next`; returns the one that ended.
  WorkPhase switch_to(WorkPhase next);

  WorkPhase current() const;
  PhaseTotals snapshot() const;

  // Switches to `phase` inside the scope, and back after it.
  class Scope {
   public:
    Scope(PhaseClock& clock, WorkPhase phase) : clock_(clock), before_(clock.switch_to(phase)) {}
    ~Scope() { clock_.switch_to(before_); }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    PhaseClock& clock_;
    WorkPhase before_;
  };

 private:
  const Clock& clock_;
  mutable std::mutex mutex_;  // held for a few instructions; a scrape may take it
  PhaseTotals totals_;        // of phases that ended
  WorkPhase current_;
  int64_t since_ns_;  // the start of the present phase
  Observer observer_;
};

}  // namespace lockstep
