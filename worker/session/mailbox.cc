#include "worker/session/mailbox.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "worker/session/phase_plan.h"

namespace lockstep {

void Mailbox::put(StartOrder order) {
  std::lock_guard lock(mutex_);
  if (order.generation <= closed_through_) return;
  start_ = std::move(order);
  changed_.notify_all();
}

void Mailbox::plan(StartOrder order) {
  std::lock_guard lock(mutex_);
  if (order.generation <= closed_through_) return;
  plan_ = std::move(order);
  changed_.notify_all();
}

void Mailbox::close(Generation through) {
  std::lock_guard lock(mutex_);
  closed_through_ = std::max(closed_through_, through);
  if (start_ && start_->generation <= closed_through_) start_.reset();
  if (plan_ && plan_->generation <= closed_through_) plan_.reset();
  changed_.notify_all();
}

void Mailbox::end() {
  std::lock_guard lock(mutex_);
  ended_ = true;
  changed_.notify_all();
}

void Mailbox::resolve(uint64_t global_batch) {
  std::lock_guard lock(mutex_);
  global_batch_ = global_batch;
  changed_.notify_all();
}

std::optional<uint64_t> Mailbox::wait_for_batch() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return ended_ || global_batch_; });
  return ended_ ? std::nullopt : global_batch_;
}

void Mailbox::acknowledge(std::string checkpoint) {
  std::lock_guard lock(mutex_);
  acknowledged_ = std::move(checkpoint);
  changed_.notify_all();
}

bool Mailbox::can_join() const {
  return plan_ && joins(plan_->start, plan_->member);
}

// A worker that would join is in no generation yet, whatever its training thread still does in an
// old one.
bool Mailbox::has_plan_for(Generation generation) const {
  return plan_ && plan_->generation > generation && !can_join();
}

std::optional<StartOrder> Mailbox::next() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return ended_ || start_ || can_join(); });
  if (ended_) return std::nullopt;
  return std::exchange(start_ ? start_ : plan_, std::nullopt);
}

bool Mailbox::wants_switch(Generation generation) const {
  std::lock_guard lock(mutex_);
  return has_plan_for(generation);
}

std::optional<StartOrder> Mailbox::wait_for_plan(Generation generation) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return is_over(generation) || has_plan_for(generation); });
  if (is_over(generation)) return std::nullopt;
  return std::exchange(plan_, std::nullopt);
}

bool Mailbox::wait_acknowledged(const std::string& checkpoint, Generation generation) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return is_over(generation) || acknowledged_ == checkpoint; });
  return acknowledged_ == checkpoint;
}

void Mailbox::recorded() {
  std::lock_guard lock(mutex_);
  changed_.notify_all();
}

bool Mailbox::wait_recorded(Generation generation, const std::function<bool()>& is_recorded) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return is_over(generation) || is_recorded(); });
  return !is_over(generation);
}

bool Mailbox::pause(Generation generation, int pause_ms) {
  std::unique_lock lock(mutex_);
  return !changed_.wait_for(lock, std::chrono::milliseconds(pause_ms),
                            [&] { return is_over(generation); });
}

}  // namespace lockstep
