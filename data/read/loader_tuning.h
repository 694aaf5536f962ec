// Decides how many threads make a loader's batches, and how many batches it keeps ahead, by what
// it is told of the first of them (data.tune; adr/0002).
//
//   who waits, in a window of batches   what is tried                  kept where
//   the training, for a slow loader     more threads                   batches come 5 % faster
//   the training, for an uneven one     twice as many batches ahead,   it waits a quarter less
//                                       and twice as many again
//   nobody, for 1 % of the time         fewer threads, 1.25 x spare    that stays so
//
//   ... until nothing is left to try ──▶ done, for good
//
// INVARIANTS
//  T1 Threads are 1 to the most there may be; batches ahead are never fewer than at first.
//  T2 What was tried and not kept is not tried again, nor is what lies beyond it. So nothing goes
//     to and fro, and after limits::kTuningWindows it is done, whatever it is told.
//  T3 It has no clock, does nothing by itself, and knows nothing of samples: which batches there
//     are and what is in them does not depend on it.
//
// It outlives the loaders of its run's generations, so that none begins from scratch.
//
// Thread-safety: one thread, which takes the batches.
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

// Of one batch.
struct BatchTimes {
  uint64_t use_ns = 0;   // what its consumer did before he asked for it
  uint64_t wait_ns = 0;  // that he then waited
  uint64_t make_ns = 0;  // what the loader needed for it, pauses for space left out
};

enum class TuningEnd {
  kKeepsUp,    // the consumer does not wait
  kSlow,       // he does: batches take longer to make than to use, on as many threads as help
  kUneven,     // he does: some take much longer than others, more than lie ahead
  kOutOfTime,  // still not done after all its windows
};

struct TuningResult {
  TuningEnd end = TuningEnd::kKeepsUp;
  LoaderSetting setting;
  double waited = 0;         // share of the consumer's time
  bool are_threads = false;  // whether threads were for it to say
  std::string text() const;  // for people
};

class LoaderTuning {
 public:
  // Begins with `first`. `most_threads` 0: first.threads are not for it to say.
  explicit LoaderTuning(LoaderSetting first, uint32_t most_threads = 0);
  virtual ~LoaderTuning() = default;

  LoaderSetting setting() const { return setting_; }

  // Before the first batch of a loader.
  void begin();

  // After every batch but the first. True: setting() is another one.
  virtual bool took(const BatchTimes& times);

  // The machine has not the threads, or the memory, that setting() asks for, but only these: it
  // goes back to what was kept, or where that is what was asked for, to what there is.
  void refused(LoaderSetting has);

  // Once it is done.
  const std::optional<TuningResult>& result() const { return result_; }
  bool is_done() const { return result_.has_value(); }

 protected:
  LoaderSetting setting_;

 private:
  enum class Try { kNone, kMoreThreads, kFewerThreads, kDeeper };

  // What a window of batches says.
  struct Window {
    uint64_t batches = 0;
    uint64_t use_ns = 0;
    uint64_t wait_ns = 0;
    uint64_t make_ns = 0;
    uint64_t longest_use_ns = 0;

    void add(const BatchTimes& times);
    bool is_full() const;
    bool has_pause() const;  // an evaluation, say: it says nothing of the loader
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

  // What may help, as far as is known.
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
  uint32_t settling_ = 0;  // batches that are still of the setting before
  uint32_t windows_ = 0;
  uint32_t pauses_ = 0;  // windows left out, one after another
  std::optional<TuningResult> result_;
};

}  // namespace lockstep::data
