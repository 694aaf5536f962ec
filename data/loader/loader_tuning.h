// Decides how many threads make a loader's batches, and how many batches lie ahead, from the times
// of the first batches (data.tune; adr/0001-how-tuning-decides.md).
//
//   who waits, in a window of batches   what is tried                  kept if
//   the training, for a slow loader     more threads                   batches come 5 % faster
//   the training, for an uneven one     twice as many batches ahead,   it waits a quarter less
//                                       and twice as many again
//   no one, for 1 % of the time         fewer threads, 1.25 x spare    that stays so
//
//   ... until nothing is left to try ──▶ done, for good
//
// INVARIANTS
//  T1 Threads are 1 to the allowed maximum. Batches ahead are never fewer than at first.
//  T2 It never tries a setting again that it tried and did not keep, nor one beyond it. So the
//     setting never oscillates, and tuning ends after limits::kTuningWindows at the latest.
//  T3 It has no clock and no thread, and knows nothing of samples: no batch depends on it.
//
// It outlives the loaders of its run's generations, so that no generation begins from scratch.
//
// Thread-safety: the thread that takes the batches.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace lockstep::data {

struct LoaderSetting {
  uint32_t threads = 1;
  uint32_t ahead = 1;  // batches that may be ready
  bool operator==(const LoaderSetting&) const = default;
};

// The times of one batch.
struct BatchTimes {
  uint64_t use_ns = 0;   // the consumer worked before it asked for the batch
  uint64_t wait_ns = 0;  // the consumer then waited
  uint64_t make_ns = 0;  // the loader made the batch, without waits for space
};

enum class TuningEnd {
  kKeepsUp,    // the consumer does not wait
  kSlow,       // it waits: making takes longer than using, on as many threads as help
  kUneven,     // it waits: some batches take much longer than others, more than lie ahead
  kOutOfTime,  // not done after all windows
};

struct TuningResult {
  TuningEnd end = TuningEnd::kKeepsUp;
  LoaderSetting setting;
  double waited = 0;         // share of the consumer's time
  bool are_threads = false;  // whether tuning could change threads
  std::string text() const;  // for people
};

class LoaderTuning {
 public:
  // Begins with `first`. `most_threads` 0: first.threads stay.
  explicit LoaderTuning(LoaderSetting first, uint32_t most_threads = 0);
  virtual ~LoaderTuning() = default;

  LoaderSetting setting() const { return setting_; }

  // Before the first batch of a loader.
  void begin();

  // After every batch but the first. True if setting() has changed.
  virtual bool took(const BatchTimes& times);

  // Tells the tuning that the machine has threads and memory for `has` only, not for setting().
  // Tuning goes back to the kept setting, or to `has` if the kept setting is what was asked for.
  void refused(LoaderSetting has);

  // Has a value once tuning is done.
  const std::optional<TuningResult>& result() const { return result_; }
  bool is_done() const { return result_.has_value(); }

 protected:
  LoaderSetting setting_;

 private:
  enum class Try { kNone, kMoreThreads, kFewerThreads, kDeeper };

  // The times of a window of batches.
  struct Window {
    uint64_t batches = 0;
    uint64_t use_ns = 0;
    uint64_t wait_ns = 0;
    uint64_t make_ns = 0;
    uint64_t longest_use_ns = 0;

    void add(const BatchTimes& times);
    bool is_full() const;
    bool has_pause() const;  // such as an evaluation, which tells nothing about the loader
    double waited() const;   // share of the time
    double rate() const;     // batches a nanosecond
    double load() const;     // time to make batches over the time to use them
  };

  bool decide(const Window& seen);
  bool has_helped(const Window& seen) const;
  void give_up();
  bool try_next();
  bool try_more_threads();
  bool try_fewer_threads();
  bool try_deeper();
  bool use(LoaderSetting setting, Try what);
  void end(TuningEnd how);

  const bool are_threads_;

  // Bounds of the settings that may still help.
  uint32_t least_threads_ = 1;
  uint32_t most_threads_;
  uint32_t most_ahead_;

  LoaderSetting kept_;  // the best so far
  Window kept_seen_;    // with it
  struct Shallow {
    uint32_t ahead = 0;
    double waited = 0;
  };
  std::optional<Shallow> shallow_;  // before more were kept ahead
  Try try_ = Try::kNone;

  Window window_;
  uint32_t settling_ = 0;  // batches made with the setting before
  uint32_t windows_ = 0;
  uint32_t pauses_ = 0;  // windows left out in a row
  std::optional<TuningResult> result_;
};

}  // namespace lockstep::data
