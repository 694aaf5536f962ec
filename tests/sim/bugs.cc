#include "tests/sim/bugs.h"

#include <array>
#include <cstddef>

namespace lockstep::sim {
namespace {

Bug& planted() {
  static Bug bug = Bug::kNone;
  return bug;
}

}  // namespace

const char* bug_name(Bug bug) {
  static constexpr std::array<const char*, static_cast<size_t>(Bug::kCount)> kNames = {
      "none",
      "ack-before-commit",
      "history-before-commit",
      "generation-not-checked",
      "resume-after-smallest",
      "start-before-all-answered",
      "batch-not-kept",
      "pending-kept-over-redo",
      "plan-forgotten-at-take-over",
      "term-not-counted",
      "row-not-closed",
      "hole-not-seen",
      "checkpoint-not-kept",
      "slot-forgotten",
      "least-named-goes",
      "expelled-goes-on",
      "damage-not-cut",
      "killed-at-once",
      "skip-not-told",
      "skipped-count-expected",
      "skip-of-one-turn",
      "evaluated-within-batch",
      "experience-lost",
      "end-forgotten",
      "best-until-rollback-dropped",
      "way-to-best-dropped",
      "unjudged-dropped",
      "dropped-counts",
      "open-not-compared",
      "open-term-trains",
      "order-forgotten",
      "open-after-the-commit",
      "undo-ignored",
      "notice-not-repeated",
      "script-end-not-kept",
      "batch-lost-on-reconnect",
      "closed-gate-lets-in",
      "numbers-of-old-identity",
      "promise-before-closed",
      "script-end-not-repeated",
      "edge-run-again",
      "answer-outside-gate",
      "new-identity-keeps-state",
      "partial-reused-in-redo",
      "switch-before-all-have-heard",
      "no-barrier-at-switch",
      "torn-transfer-installed",
      "rewrite-before-all-have-read",
      "track-of-joiner-from-start",
      "eval-reported-by-one",
      "edge-before-its-evaluation",
      "skipped-slot-counted",
  };
  return kNames[static_cast<size_t>(bug)];
}

void plant(Bug bug) {
  planted() = bug;
}

bool is_planted(Bug bug) {
  return planted() == bug;
}

}  // namespace lockstep::sim
