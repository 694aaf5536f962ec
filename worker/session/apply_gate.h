// The gate that an apply enters, and that closes a generation (coordinator/PROTOCOL.md, "Change
// after a death"). The script's code between two epochs enters it like an apply, since it may
// change the kept state.
//
//                 open(g)                    try_enter / leave, once a step
//     closed  ──────────────▶  open for g  ◀──────────────────────────────▶  apply in progress
//        ▲                         │ close(g)                                    │ close(g)
//        └─────────────────────────┴──────────────◀── leave() ── closing ◀───────┘
//
// The gate also keeps this worker's standing, because the answer to a prepare must match exactly
// what the gate let through. The critical section that ends an apply counts the step. The critical
// section that opens the gate notes the generation. A planned change opens the gate for the next
// generation while the generation before is still open.
//
// INVARIANTS
//  G1 After close(g) has answered, no apply of a generation <= g begins, and none is in progress.
//  G2 The answer is the state's resume point. It does not change until open() of a later
//     generation.
//  G3 Every close() answers exactly once: at once, or from the leave() that it waits for.
//  G4 An end by the script becomes part of the answer together with the step that it ends, or with
//     the state after the edge where it stands.
//  G5 After forget() the answers are as for a worker that never was in a generation, even if an
//     apply was in progress.
//
// Thread-safety: open(), try_enter(), end_here(), end_at_edge(), leave(), leave_at(), reached()
// and lost_state() from the training thread; close(), forget(), standing(), is_closed() and
// is_applying() from any thread. The answer runs on the thread that called close() or leave(),
// without the gate's lock.
#pragma once

#include <functional>
#include <mutex>
#include <optional>
#include <vector>

#include "comm/base/ids.h"
#include "worker/session/phase_plan.h"

namespace lockstep {

// Where a worker stands. The worker answers a prepare with this, and sends it when it registers.
struct Standing {
  Generation lived = 0;                // the newest generation that was opened; 0: none
  ResumePoint since;                   // where `lived` began; valid if lived > 0
  std::optional<ResumePoint> applied;  // none: the worker has no state
  Step ends_at = 0;  // = applied->step: the script has ended the run there; 0: it has not
  bool operator==(const Standing&) const = default;
};

class ApplyGate {
 public:
  using Answer = std::function<void(Standing)>;

  // The state is at `at`, and `generation` may apply. Returns false if `generation` is closed
  // already. `plan` says what comes after each applied step.
  bool open(Generation generation, ResumePoint at, const PhasePlan& plan);

  // Something outside is about to overwrite the state. Until open() there is no state to answer
  // with.
  void lost_state();

  bool try_enter();
  // The script ends the run with the step whose apply is in progress. REQUIRES: try_enter() said
  // yes.
  void end_here();
  // The same for an entry that is no apply: the run ends where the worker stands.
  void end_at_edge();
  // The apply is over: one more step is applied. REQUIRES: try_enter() said yes.
  void leave();
  // Leaves after an entry that was no apply: the state is now at this point. REQUIRES: as leave().
  void leave_at(ResumePoint point);

  // A phase without an apply is over (evaluation, checkpoint). Returns false if the generation was
  // closed, because the answer must stay true.
  bool reached(ResumePoint point);

  // Closes all generations up to and including `through`.
  void close(Generation through, Answer answer);

  // Closes the open generation, and forgets this worker's generations and state.
  void forget();

  Standing standing() const;
  bool is_closed(Generation generation) const;
  // True while an apply is in progress, and forever after one failed: no generation may follow.
  bool is_applying() const;

 private:
  Standing standing_locked() const;
  void end_after(Step steps);
  void leave_with(const std::optional<ResumePoint>& point);

  mutable std::mutex mutex_;
  Generation open_ = 0;  // 0: none was opened
  ResumePoint since_;
  Generation closed_through_ = 0;
  bool applying_ = false;
  PhasePlan plan_;
  std::optional<ResumePoint> applied_;
  Step ends_at_ = 0;             // where the script ended the run in this process; 0: nowhere
  std::vector<Answer> waiting_;  // answered when the apply in progress leaves
};

}  // namespace lockstep
