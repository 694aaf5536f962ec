// Splits the wall time of a worker's training thread into phases.
//
// One thread says what it does now, with switch_to(); everything until the next call is counted
// for that phase. What a phase costs is therefore never estimated, and nothing is left over.
//
//   init | data_wait | forward | backward | communication | optimizer | data_wait | forward | ...
//   ^ constructor                                                       time ->
//
// Thread-safety: switch_to() and Scope on one thread; snapshot() and current() from any.
//
// Invariants:
//  1. In every snapshot the phases add up to the time since construction, to the nanosecond.
//  2. No total ever falls from one snapshot to a later one.
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
  kDataWait,       // the next batch is not there yet
  kCopy,           // batch to tensors, and to the device
  kForward,        // and loss
  kBackward,       // with the communication that it hides
  kCommunication,  // not hidden: waiting for reduced buckets
  kOptimizer,      // gate and apply
  kEval,
  kCheckpoint,
  kRecovery,  // from a close to the next start, and fetching state
  kOther,     // records, bookkeeping
};
inline constexpr size_t kWorkPhases = static_cast<size_t>(WorkPhase::kOther) + 1;

// "data_wait": the value of the label `phase`.
std::string_view phase_name(WorkPhase phase);

struct PhaseTotals {
  std::array<int64_t, kWorkPhases> ns{};

  int64_t of(WorkPhase phase) const { return ns[static_cast<size_t>(phase)]; }
  int64_t sum() const;
  // What computes the model: forward, backward, optimizer.
  int64_t useful() const;
  // Time since an earlier snapshot of the same clock.
  PhaseTotals since(const PhaseTotals& earlier) const;
};

class PhaseClock {
 public:
  // The time from here on counts for `first`. `clock` outlives this object.
  explicit PhaseClock(const Clock& clock, WorkPhase first = WorkPhase::kInit);
  PhaseClock(const PhaseClock&) = delete;
  PhaseClock& operator=(const PhaseClock&) = delete;

  // Told of every phase that ends, on the thread that calls switch_to(), as is this; empty: nobody.
  using Observer = std::function<void(WorkPhase phase, int64_t begin_ns, int64_t end_ns)>;
  void observe(Observer observer) { observer_ = std::move(observer); }

  // Ends the present phase and begins `next`; returns the one that ended.
  WorkPhase switch_to(WorkPhase next);

  WorkPhase current() const;
  PhaseTotals snapshot() const;

  // `phase` inside the scope, what was before after it.
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
  int64_t since_ns_;  // when the present phase began
  Observer observer_;
};

}  // namespace lockstep
