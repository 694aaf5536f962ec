// The gate that an apply takes and that closes a generation (coordinator/PROTOCOL.md,
// "Change after a death").
//
//                 open(g)                    try_enter / leave, once a step
//     closed  ──────────────▶  open for g  ◀──────────────────────────────▶  apply in progress
//        ▲                         │ close(g)                                    │ close(g)
//        └─────────────────────────┴──────────────◀── leave() ── closing ◀───────┘
//
// It also keeps where this worker stands, because the answer to a prepare must be exactly what the
// gate let through: the step is counted here, in the same critical section that ends the apply, and
// the generation in which it could be applied, in the one that opens the gate for it. A planned
// change opens the gate for the next generation while the one before is still open.
//
// INVARIANTS
//  G1 After close(g) has answered, no apply of a generation <= g begins, and none is in progress.
//  G2 The answer is the state's resume point; it does not change until open() of a later
//     generation.
//  G3 Every close() answers exactly once: at once, or from the leave() it waits for.
//  G4 After forget() the answers are those of a worker that never was in a generation, even if an
//     apply was in progress.
//
// Thread-safety: open(), try_enter(), leave(), reached(), lost_state() from the training thread;
// close(), forget(), standing() and is_closed() from any thread. The answer runs on the thread that
// closed or left, without the gate's lock.
#pragma once

#include <functional>
#include <mutex>
#include <optional>
#include <vector>

#include "comm/base/ids.h"
#include "worker/session/phase_plan.h"

namespace lockstep {

// Where a worker stands: what it answers to a prepare and says when it registers.
struct Standing {
  Generation lived = 0;                // the newest generation that was opened; 0: none
  ResumePoint since;                   // where that began; valid if lived > 0
  std::optional<ResumePoint> applied;  // none: it has no state
  bool operator==(const Standing&) const = default;
};

class ApplyGate {
 public:
  using Answer = std::function<void(Standing)>;

  // The state is at `at` and generation `generation` may apply; false if it is closed already.
  // `plan` says what comes next once so many steps are applied.
  bool open(Generation generation, ResumePoint at, const PhasePlan& plan);

  // The state is about to be overwritten from outside; until open() there is none to answer with.
  void lost_state();

  bool try_enter();
  // REQUIRES: try_enter() said yes. One more step is applied.
  void leave();

  // A phase without an apply is over (evaluation, checkpoint). False if the generation was closed:
  // what was answered must stay true.
  bool reached(ResumePoint point);

  // Closes all generations up to and including `through`.
  void close(Generation through, Answer answer);

  // Closes what is open, and what this worker was and holds belongs to nobody any more.
  void forget();

  Standing standing() const;
  bool is_closed(Generation generation) const;

 private:
  mutable std::mutex mutex_;
  Generation open_ = 0;  // 0: none was opened
  ResumePoint since_;
  Generation closed_through_ = 0;
  bool applying_ = false;
  PhasePlan plan_;
  std::optional<ResumePoint> applied_;
  std::vector<Answer> waiting_;  // answered when the apply in progress leaves
};

}  // namespace lockstep
