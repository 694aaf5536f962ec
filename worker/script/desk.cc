#include "worker/script/desk.h"

#include <utility>

#include "comm/wire/exit_status.h"

namespace lockstep {

Status status_of(const ls_reply& reply) {
  if (reply.code == LS_OK) return Status::ok();
  if (reply.has_raised != 0 && reply.text != nullptr) return {Code::kRaised, reply.text};
  return status_from_exit_code(reply.code,
                               reply.text == nullptr ? "the script failed" : reply.text);
}

Result<ls_reply> Desk::ask(const ls_order& order) {
  std::unique_lock lock(mutex_);
  if (!end_) {
    order_ = order;
    place_ = Place::kOrdered;
    changed_.notify_all();
    changed_.wait(lock,
                  [&] { return place_ == Place::kReplied || (end_ && place_ == Place::kOrdered); });
  }
  const bool has_reply = place_ == Place::kReplied;
  place_ = Place::kFree;
  changed_.notify_all();  // the end may wait for this
  if (!has_reply) return Status(Code::kAborted, "the run is over for this worker");
  return reply_;
}

Result<bool> Desk::next(const ls_reply* reply, ls_order* order, std::chrono::milliseconds wait) {
  std::unique_lock lock(mutex_);
  if ((reply != nullptr) != (place_ == Place::kInHand))
    return Status(Code::kUsage,
                  reply != nullptr ? "a reply to no order" : "the order before has no reply yet");
  if (reply != nullptr) {
    reply_ = *reply;
    place_ = Place::kReplied;
    changed_.notify_all();
  }
  changed_.wait_for(
      lock, wait, [&] { return place_ == Place::kOrdered || (end_ && place_ != Place::kReplied); });
  if (end_ && place_ != Place::kReplied) {
    *order = {.kind = LS_END,
              .exit_code = end_->exit_code,
              .task = {},
              .generation = 0,
              .step = 0,
              .tensors = nullptr,
              .tensor_count = 0,
              .text = end_->text.c_str(),
              .is_again = 0,
              .is_done = end_->is_done,
              .is_writer = 0,
              .share_end = 0,
              .loss = 0,
              .ends_run = 0,
              .metrics = nullptr,
              .evaluated = {},
              .evaluation = 0,
              .device_sums = nullptr,
              .factor = 1,
              .slots = 0};
    is_told_ = true;
    changed_.notify_all();
    return true;
  }
  if (place_ != Place::kOrdered) return false;
  *order = order_;
  place_ = Place::kInHand;
  return true;
}

void Desk::fail_in_hand(int exit_code) {
  const std::lock_guard lock(mutex_);
  if (place_ != Place::kInHand) return;
  reply_ = {};
  reply_.code = exit_code != 0 ? exit_code : 70;
  place_ = Place::kReplied;
  changed_.notify_all();
}

void Desk::end(DeskEnd end) {
  const std::lock_guard lock(mutex_);
  if (!end_) end_ = std::move(end);
  changed_.notify_all();
}

bool Desk::is_over() const {
  const std::lock_guard lock(mutex_);
  return end_.has_value();
}

bool Desk::wait_until_told(std::chrono::milliseconds wait) const {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, wait, [&] { return is_told_; });
}

}  // namespace lockstep
