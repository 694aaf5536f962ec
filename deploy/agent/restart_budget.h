// Counts the restarts that are left within a sliding window of time.
//
// Thread-safety: a value; one thread.
#pragma once

#include <cstdint>
#include <deque>

namespace lockstep {

class RestartBudget {
 public:
  RestartBudget(uint32_t limit, int64_t window_ms) : limit_(limit), window_ms_(window_ms) {}

  // Times are monotonic and never go back.
  uint32_t left(int64_t now_ms) {
    while (!spent_ms_.empty() && now_ms - spent_ms_.front() >= window_ms_) spent_ms_.pop_front();
    return limit_ - static_cast<uint32_t>(spent_ms_.size());
  }

  // REQUIRES: left(now_ms) > 0.
  void spend(int64_t now_ms) { spent_ms_.push_back(now_ms); }

 private:
  uint32_t limit_;
  int64_t window_ms_;
  std::deque<int64_t> spent_ms_;  // at most `limit_`
};

}  // namespace lockstep
