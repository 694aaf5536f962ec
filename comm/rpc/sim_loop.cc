#include "comm/rpc/sim_loop.h"

namespace lockstep::rpc {

TimerId SimLoop::call_after(int64_t delay_ms, std::function<void()> fn) {
  const TimerId id = ++last_id_;
  const int64_t at_ms = now_ms_ + (delay_ms > 0 ? delay_ms : 0);
  events_.emplace(Key(at_ms, id), std::move(fn));
  times_.emplace(id, at_ms);
  return id;
}

void SimLoop::cancel(TimerId id) {
  const auto time = times_.find(id);
  if (time == times_.end()) return;
  events_.erase(Key(time->second, id));
  times_.erase(time);
}

bool SimLoop::run_one() {
  if (events_.empty()) return false;
  const auto event = events_.extract(events_.begin());
  times_.erase(event.key().second);
  now_ms_ = event.key().first;
  event.mapped()();
  return true;
}

void SimLoop::run_for(int64_t ms) {
  const int64_t until_ms = now_ms_ + ms;
  while (!events_.empty() && events_.begin()->first.first <= until_ms) run_one();
  now_ms_ = until_ms;
}

bool SimLoop::run_until(const std::function<bool()>& done, int64_t ms) {
  const int64_t until_ms = now_ms_ + ms;
  while (!done()) {
    if (events_.empty() || events_.begin()->first.first > until_ms) return false;
    run_one();
  }
  return true;
}

}  // namespace lockstep::rpc
