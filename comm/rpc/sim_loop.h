// A Loop under a virtual clock, for tests and the simulator.
//
// Thread-safety: one thread, also for post().
//
// Invariant: events run in the order of (time, number of scheduling). Time passes only between
// them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <utility>

#include "comm/rpc/transport.h"

namespace lockstep::rpc {

class SimLoop final : public Loop {
 public:
  void post(std::function<void()> fn) override { call_after(0, std::move(fn)); }
  TimerId call_after(int64_t delay_ms, std::function<void()> fn) override;
  void cancel(TimerId id) override;
  int64_t now_ms() const override { return now_ms_; }

  // Runs the next event and moves the clock to it. False if there is none.
  bool run_one();
  // Runs all events due until `ms` from now, and leaves the clock there.
  void run_for(int64_t ms);
  // Runs until `done`, until `ms` of virtual time have passed, or until nothing is left. Returns
  // done().
  bool run_until(const std::function<bool()>& done, int64_t ms);
  size_t pending() const { return events_.size(); }

 private:
  using Key = std::pair<int64_t, TimerId>;  // time, number
  std::map<Key, std::function<void()>> events_;
  std::map<TimerId, int64_t> times_;
  int64_t now_ms_ = 0;
  TimerId last_id_ = 0;
};

}  // namespace lockstep::rpc
