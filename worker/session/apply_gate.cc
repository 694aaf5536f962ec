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
  if (at.step != ends_at_) ends_at_ = 0;  // the steps that said so are gone
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

void ApplyGate::end_here() {
  end_after(1);
}

void ApplyGate::end_at_edge() {
  end_after(0);
}

void ApplyGate::end_after(Step steps) {
  std::lock_guard lock(mutex_);
  LOCKSTEP_CHECK(applying_, "the end of a run follows try_enter()");
  if (!applied_) return;  // all was forgotten during the apply
  const Step step = applied_->step + steps;
  if (step >= plan_.total_steps) return;  // it ends there anyway
  plan_.end_at(step);
  ends_at_ = step;
}

void ApplyGate::leave() {
  leave_with(std::nullopt);
}

void ApplyGate::leave_at(ResumePoint point) {
  leave_with(point);
}

void ApplyGate::leave_with(const std::optional<ResumePoint>& point) {
  std::vector<Answer> answers;
  Standing standing;
  {
    std::lock_guard lock(mutex_);
    LOCKSTEP_CHECK(applying_, "leave() follows try_enter()");
    applying_ = false;
    if (applied_)  // else all was forgotten during the apply
      applied_ =
          point ? *point : ResumePoint{applied_->step + 1, plan_.after_step(applied_->step + 1)};
    standing = standing_locked();
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
    standing = standing_locked();
  }
  answer(standing);
}

void ApplyGate::forget() {
  std::lock_guard lock(mutex_);
  closed_through_ = std::max(closed_through_, open_);
  open_ = 0;
  since_ = {};
  applied_.reset();
  ends_at_ = 0;
}

// A later generation may have begun before the end.
Standing ApplyGate::standing_locked() const {
  const bool stands_there = applied_ && ends_at_ > 0 && applied_->step == ends_at_ &&
                            !LOCKSTEP_BUG(kScriptEndNotRepeated);
  return {open_, since_, applied_, stands_there ? ends_at_ : 0};
}

Standing ApplyGate::standing() const {
  std::lock_guard lock(mutex_);
  return standing_locked();
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
