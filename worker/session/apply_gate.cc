#include "worker/session/apply_gate.h"

#include <algorithm>

#include "comm/base/check.h"

namespace lockstep {

bool ApplyGate::open(Generation generation, ResumePoint at, const RunPlan& plan) {
  std::lock_guard lock(mutex_);
  LOCKSTEP_CHECK(!applying_, "a generation is opened between two applies");
  if (generation <= closed_through_) return false;
  open_ = generation;
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
  if (open_ <= closed_through_) return false;
  applying_ = true;
  return true;
}

void ApplyGate::leave() {
  std::vector<Answer> answers;
  ResumePoint point;
  {
    std::lock_guard lock(mutex_);
    LOCKSTEP_CHECK(applying_ && applied_, "leave() follows try_enter()");
    applying_ = false;
    point = {applied_->step + 1, plan_.after_step(applied_->step + 1)};
    applied_ = point;
    answers.swap(waiting_);
  }
  for (const Answer& answer : answers) answer(point);
}

bool ApplyGate::reached(ResumePoint point) {
  std::lock_guard lock(mutex_);
  if (open_ <= closed_through_) return false;
  applied_ = point;
  return true;
}

void ApplyGate::close(Generation through, Answer answer) {
  std::optional<ResumePoint> point;
  {
    std::lock_guard lock(mutex_);
    closed_through_ = std::max(closed_through_, through);
    if (applying_) {
      waiting_.push_back(std::move(answer));
      return;
    }
    point = applied_;
  }
  answer(point);
}

std::optional<ResumePoint> ApplyGate::applied() const {
  std::lock_guard lock(mutex_);
  return applied_;
}

bool ApplyGate::is_closed(Generation generation) const {
  std::lock_guard lock(mutex_);
  return generation <= closed_through_;
}

}  // namespace lockstep
