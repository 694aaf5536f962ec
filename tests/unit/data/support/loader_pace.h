// Models a loader and the taker of its batches, as numbers only: no thread, no clock, and every run
// the same.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "comm/base/limits.h"
#include "data/loader/loader_tuning.h"

namespace lockstep::data {

class LoaderPace {
 public:
  using TimeFn = std::function<uint64_t(uint32_t threads)>;  // ns of the next batch

  LoaderPace(LoaderTuning& tuning, TimeFn make, TimeFn use)
      : tuning_(tuning), make_(std::move(make)), use_(std::move(use)) {
    tuning_.begin();
    setting_ = tuning_.setting();
    seen_.push_back(setting_);
    begin_one();
    ask();
  }

  // Until it is done, or so many batches were taken. Returns how many there were.
  uint64_t run(uint64_t batches = kBound) {
    const uint64_t end = taken_ + batches;
    while (!tuning_.is_done() && taken_ < end) {
      const bool is_made_first = made_at_ && (!asks_at_ || *made_at_ <= *asks_at_);
      is_made_first ? finish_one() : ask();
    }
    return taken_;
  }

  // Settings, in the order in which they were used.
  const std::vector<LoaderSetting>& seen() const { return seen_; }

  // No run may reach this number of batches.
  static constexpr uint64_t kBound =
      limits::kTuningWindows * (limits::kTuningWindowBatches + 2 * limits::kTunedBatches + 64);

 private:
  void begin_one() {
    making_ns_ = make_(setting_.threads);
    made_at_ = now_ + making_ns_;
  }

  void finish_one() {
    now_ = *made_at_;
    made_at_.reset();
    ready_.push_back(making_ns_);
    if (waits_since_) take();
    if (!made_at_ && ready_.size() < setting_.ahead) begin_one();
  }

  void ask() {
    if (asks_at_) now_ = *asks_at_;
    asks_at_.reset();
    waits_since_ = now_;
    if (!ready_.empty()) take();
  }

  void take() {
    const BatchTimes times{*waits_since_ - given_at_, now_ - *waits_since_, ready_.front()};
    ready_.pop_front();
    waits_since_.reset();
    given_at_ = now_;
    if (taken_++ > 0 && tuning_.took(times)) {
      setting_ = tuning_.setting();
      seen_.push_back(setting_);
    }
    asks_at_ = now_ + use_(setting_.threads);
    if (!made_at_ && ready_.size() <= setting_.ahead / 2) begin_one();
  }

  LoaderTuning& tuning_;
  const TimeFn make_;
  const TimeFn use_;
  LoaderSetting setting_;
  std::vector<LoaderSetting> seen_;

  uint64_t now_ = 0;
  uint64_t given_at_ = 0;
  uint64_t taken_ = 0;
  uint64_t making_ns_ = 0;
  std::optional<uint64_t> made_at_;      // of the batch in the making
  std::optional<uint64_t> asks_at_;      // the taker, which is not waiting
  std::optional<uint64_t> waits_since_;  // the taker, which is waiting
  std::deque<uint64_t> ready_;           // what each took to make
};

}  // namespace lockstep::data
