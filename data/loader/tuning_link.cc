#include "data/loader/tuning_link.h"

#include <chrono>

namespace lockstep::data {
namespace {

uint64_t tuning_clock_ns() {
  return static_cast<uint64_t>(
      std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count());
}

}  // namespace

TuningLink::TuningLink(LoaderTuning* tuning, uint32_t threads, BatchRing& ring)
    : tuning_(tuning), ring_(ring), wanted_threads_(threads) {
  if (tuning_ == nullptr) return;
  tuning_->begin();
  use_setting();
}

void TuningLink::begin_batch(SampleTeam* team) {
  begun_ns_ = measures_.load(std::memory_order_relaxed) ? tuning_clock_ns() : 0;
  uint32_t wanted = wanted_threads_.load(std::memory_order_relaxed);
  if (team == nullptr || team->threads() == wanted || team->resize(wanted).is_ok()) return;
  has_no_threads_.store(true, std::memory_order_relaxed);
  wanted_threads_.compare_exchange_strong(wanted, team->threads());  // unless more is asked by now
}

void TuningLink::end_batch(BatchRing::Place& place) {
  place.make_ns = begun_ns_ == 0 ? 0 : tuning_clock_ns() - begun_ns_;
}

void TuningLink::asks() {
  if (!is_on()) return;
  asked_ns_ = tuning_clock_ns();
  waited_ns_ = ring_.wait_ns();
}

void TuningLink::got(const BatchRing::Place& place) {
  if (!is_on()) return;
  const uint64_t wait_ns = ring_.wait_ns() - waited_ns_;
  const uint64_t given_before_ns = given_ns_;
  given_ns_ = asked_ns_ + wait_ns;
  if (given_before_ns == 0) return;
  if (has_no_threads_.exchange(false, std::memory_order_relaxed)) {
    LoaderSetting has = tuning_->setting();
    has.threads = wanted_threads_.load(std::memory_order_relaxed);
    tuning_->refused(has);
    use_setting();
    return;
  }
  const bool is_changed = tuning_->took({asked_ns_ - given_before_ns, wait_ns, place.make_ns});
  if (is_changed || tuning_->is_done()) use_setting();
}

void TuningLink::use_setting() {
  const LoaderSetting setting = tuning_->setting();
  if (setting.ahead != ring_.ahead() && !ring_.set_ahead(setting.ahead))
    tuning_->refused({setting.threads, ring_.ahead()});
  wanted_threads_.store(tuning_->setting().threads, std::memory_order_relaxed);
  measures_.store(is_on(), std::memory_order_relaxed);
}

}  // namespace lockstep::data
