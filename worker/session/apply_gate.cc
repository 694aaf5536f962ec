#include "worker/session/apply_gate.h"

#include <algorithm>

#include "comm/base/check.h"
#include "comm/base/planted_bug.h"

namespace lockstep {

bool ApplyGate::open(Generation generation, ResumePoint at, const PhasePlan& plan) {
  std::lock_guard lock(mutex_);
  LOCKSTEP_CHECK(!applying_, "a generation is opened between two applies");
  if (generation <= closed_through_) return false;
  open_ = generation;
  since_ = at;
  plan_ = plan;
  applied_ = at;
  return true;
}

void ApplyGate::lost_state() {
  std::lock_guard lock(mutex_);
  LOCKSTEP_CHECK(!applying_, "state is replaced between two applies");
  applied_.reset();
}

bool ApplyGate::try_enter() {
  std::lock_guard lock(mutex_);
  LOCKSTEP_CHECK(!applying_, "applies do not nest");
  if (open_ <= closed_through_ && !LOCKSTEP_BUG(kClosedGateLetsIn)) return false;
  applying_ = true;
  return true;
}

void ApplyGate::leave() {
  std::vector<Answer> answers;
  Standing standing;
  {
    std::lock_guard lock(mutex_);
    LOCKSTEP_CHECK(applying_, "leave() follows try_enter()");
    applying_ = false;
    if (applied_)  // else all was forgotten during the apply
      applied_ = {applied_->step + 1, plan_.after_step(applied_->step + 1)};
    standing = {open_, since_, applied_};
    answers.swap(waiting_);
  }
  for (const Answer& answer : answers) answer(standing);
}

bool ApplyGate::reached(ResumePoint point) {
  std::lock_guard lock(mutex_);
  if (open_ <= closed_through_) return false;
  applied_ = point;
  return true;
}

void ApplyGate::close(Generation through, Answer answer) {
  Standing standing;
  {
    std::lock_guard lock(mutex_);
    closed_through_ = std::max(closed_through_, through);
    if (applying_) {
      waiting_.push_back(std::move(answer));
      return;
    }
    standing = {open_, since_, applied_};
  }
  answer(standing);
}

void ApplyGate::forget() {
  std::lock_guard lock(mutex_);
  closed_through_ = std::max(closed_through_, open_);
  open_ = 0;
  since_ = {};
  applied_.reset();
}

Standing ApplyGate::standing() const {
  std::lock_guard lock(mutex_);
  return {open_, since_, applied_};
}

bool ApplyGate::is_closed(Generation generation) const {
  std::lock_guard lock(mutex_);
  return generation <= closed_through_;
}

bool ApplyGate::is_applying() const {
  std::lock_guard lock(mutex_);
  return applying_;
}

}  // namespace lockstep
