#include "data/loader/loader_tuning.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>

#include "comm/base/limits.h"

namespace lockstep::data {
namespace {

constexpr double kNoWait = 0.01;  // share of the time that may be waited

// Time to make a batch over time to use it. From this ratio on, batches are late because they are
// slow to make, not because they are uneven.
constexpr double kSlowLoad = 0.9;

// Measured rates of one setting are a few per cent apart.
constexpr double kFaster = 1.05;
constexpr double kAsFast = 0.98;
constexpr double kFewerWaits = 0.75;

// Gives threads back only as long as batches would still be made this many times as fast as they
// are used, if their time were divided by the threads. Work that threads do not share needs less.
constexpr double kSpare = 1.25;

// A window is long enough that a time slice of the system is a small part of it, for batches of
// microseconds. It has enough batches that an uneven one is among them.
constexpr uint64_t kWindowBatches = 128;
constexpr uint64_t kWindowNs = 250'000'000;
constexpr uint32_t kFirstBatches = 16;  // the first batches of a loader are slower
constexpr uint32_t kPausesLeftOut = 2;  // with more, pauses are how this consumer works

uint32_t threads_for(double times) {
  constexpr double kMany = 1e6;  // a consumer that takes no time
  return static_cast<uint32_t>(std::ceil(std::clamp(times, 1.0, kMany)));
}

}  // namespace

std::string TuningResult::text() const {
  char waited_percent[32];
  std::snprintf(waited_percent, sizeof waited_percent, "%.1f", 100 * waited);
  std::string text = "data.tune: ";
  if (are_threads)
    text += std::to_string(setting.threads) + (setting.threads == 1 ? " thread, " : " threads, ");
  text += std::to_string(setting.ahead) + (setting.ahead == 1 ? " batch" : " batches") +
          " ahead: the training waited " + waited_percent + " % of its time for data";
  switch (end) {
    case TuningEnd::kKeepsUp:
      return text;
    case TuningEnd::kSlow:
      return text + "; batches are slow to make, and lockstep doctor says why";
    case TuningEnd::kUneven:
      return text + "; some batches take much longer than others";
    case TuningEnd::kOutOfTime:
      return text + "; how long it waits keeps changing";
  }
  return text;
}

void LoaderTuning::Window::add(const BatchTimes& times) {
  ++batches;
  use_ns += times.use_ns;
  wait_ns += times.wait_ns;
  make_ns += times.make_ns;
  longest_use_ns = std::max(longest_use_ns, times.use_ns);
}

bool LoaderTuning::Window::is_full() const {
  if (batches >= limits::kTuningWindowBatches) return true;
  return batches >= kWindowBatches && use_ns + wait_ns >= kWindowNs;
}

bool LoaderTuning::Window::has_pause() const {
  return 2 * longest_use_ns > use_ns + wait_ns;
}

double LoaderTuning::Window::waited() const {
  return static_cast<double>(wait_ns) /
         static_cast<double>(std::max<uint64_t>(use_ns + wait_ns, 1));
}

double LoaderTuning::Window::rate() const {
  return static_cast<double>(batches) /
         static_cast<double>(std::max<uint64_t>(use_ns + wait_ns, 1));
}

double LoaderTuning::Window::load() const {
  return static_cast<double>(make_ns) / static_cast<double>(std::max<uint64_t>(use_ns, 1));
}

LoaderTuning::LoaderTuning(LoaderSetting first, uint32_t most_threads)
    : setting_(first),
      are_threads_(most_threads > 0),
      most_threads_(std::max(most_threads, first.threads)),
      most_ahead_(std::max(limits::kTunedBatches, first.ahead)),
      kept_(first) {}

// A setting on trial is compared with figures of the loader before, which may have had other
// neighbours. So begin() drops the trial, and the setting is tried again.
void LoaderTuning::begin() {
  setting_ = kept_;
  try_ = Try::kNone;
  least_threads_ = std::min(least_threads_, kept_.threads);
  window_ = {};
  settling_ = setting_.ahead + kFirstBatches;
}

bool LoaderTuning::took(const BatchTimes& times) {
  if (is_done()) return false;
  if (settling_ > 0) {
    --settling_;
    return false;
  }
  window_.add(times);
  if (!window_.is_full()) return false;
  const Window seen = std::exchange(window_, {});
  ++windows_;
  if (seen.has_pause() && pauses_ < kPausesLeftOut && windows_ < limits::kTuningWindows) {
    ++pauses_;
    return false;
  }
  pauses_ = 0;
  return decide(seen);
}

bool LoaderTuning::decide(const Window& seen) {
  const LoaderSetting before = setting_;
  if (try_ == Try::kNone || has_helped(seen)) {
    kept_ = setting_;
    kept_seen_ = seen;
    try_ = Try::kNone;
  } else {
    give_up();
  }
  if (windows_ >= limits::kTuningWindows)
    end(TuningEnd::kOutOfTime);
  else if (!try_next())
    setting_ = kept_;
  return setting_ != before;
}

bool LoaderTuning::has_helped(const Window& seen) const {
  const bool waits = seen.waited() > kNoWait;
  switch (try_) {
    case Try::kMoreThreads:
      // Threads that the training must share its cores with may cost more than they give.
      if (seen.rate() < kAsFast * kept_seen_.rate()) return false;
      return !waits || seen.rate() > kFaster * kept_seen_.rate();
    case Try::kFewerThreads:
      return !waits;
    case Try::kDeeper:  // one window says little of rare waits: end() looks at all of it
    case Try::kNone:
      return true;
  }
  return true;
}

// Half of the numbers of threads between the kept and the failed one are left to try.
void LoaderTuning::give_up() {
  const uint32_t tried = setting_.threads;
  switch (try_) {
    case Try::kMoreThreads:
      most_threads_ = kept_.threads + (tried - kept_.threads) / 2;
      break;
    case Try::kFewerThreads:
      least_threads_ = tried + (kept_.threads - tried + 1) / 2;
      break;
    case Try::kDeeper:
    case Try::kNone:
      break;
  }
  setting_ = kept_;
  try_ = Try::kNone;
}

void LoaderTuning::refused(LoaderSetting has) {
  if (is_done()) return;
  kept_ = {std::min(kept_.threads, has.threads), std::min(kept_.ahead, has.ahead)};
  if (has.threads < setting_.threads) most_threads_ = kept_.threads;
  if (has.ahead < setting_.ahead) most_ahead_ = kept_.ahead;
  begin();
}

// False if nothing is left to try; then tuning is done.
bool LoaderTuning::try_next() {
  if (kept_seen_.waited() <= kNoWait) {
    if (try_fewer_threads()) return true;
    end(TuningEnd::kKeepsUp);
    return false;
  }
  const double load = kept_seen_.load();
  const bool is_slow = load >= kSlowLoad;
  if (is_slow && try_more_threads()) return true;
  if (load < 1 && try_deeper()) return true;
  if (!is_slow && try_more_threads()) return true;
  end(is_slow ? TuningEnd::kSlow : TuningEnd::kUneven);
  return false;
}

bool LoaderTuning::try_more_threads() {
  if (!are_threads_ || kept_.threads >= most_threads_) return false;
  // As many as should keep up if each adds its full share; at most twice as many at a time.
  const uint32_t most = std::min(2 * kept_.threads, most_threads_);
  const uint32_t wanted = threads_for(kept_.threads * kept_seen_.load() * kSpare);
  least_threads_ = kept_.threads + 1;
  return use({std::clamp(wanted, kept_.threads + 1, most), kept_.ahead}, Try::kMoreThreads);
}

bool LoaderTuning::try_fewer_threads() {
  if (!are_threads_) return false;
  const uint32_t wanted = threads_for(kept_.threads * kept_seen_.load() * kSpare);
  const uint32_t fewer = std::max(wanted, least_threads_);
  if (fewer >= kept_.threads) return false;
  return use({fewer, kept_.ahead}, Try::kFewerThreads);
}

bool LoaderTuning::try_deeper() {
  if (kept_.ahead >= most_ahead_) return false;
  if (!shallow_) shallow_ = {kept_.ahead, kept_seen_.waited()};
  return use({kept_.threads, std::min(2 * kept_.ahead, most_ahead_)}, Try::kDeeper);
}

bool LoaderTuning::use(LoaderSetting setting, Try what) {
  setting_ = setting;
  try_ = what;
  settling_ = setting.ahead + 2;
  return true;
}

void LoaderTuning::end(TuningEnd how) {
  double waited = kept_seen_.waited();
  if (shallow_ && waited > kFewerWaits * shallow_->waited) {  // depth is not worth its memory
    kept_.ahead = shallow_->ahead;
    waited = shallow_->waited;
  }
  setting_ = kept_;
  result_ = {how, kept_, waited, are_threads_};
}

}  // namespace lockstep::data
