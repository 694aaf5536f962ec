// Links loader_tuning.h to the two threads of a loader: the thread that makes batches gets the
// setting, and the thread that takes them learns how long each took. It looks at no clock without
// tuning, nor once tuning is done.
//
// Thread-safety: begin_batch() and end_batch() from the thread that makes batches; asks() and got()
// from the thread that takes them.
#pragma once

#include <atomic>
#include <cstdint>

#include "data/loader/batch_ring.h"
#include "data/loader/loader_tuning.h"
#include "data/loader/sample_team.h"

namespace lockstep::data {

class TuningLink {
 public:
  // Begins `tuning`. Null: no tuning, `threads` stay. All arguments outlive it.
  TuningLink(LoaderTuning* tuning, uint32_t threads, BatchRing& ring);

  // Around the making of a batch. Resizes `team`, if there is one, to the threads that are wanted.
  void begin_batch(SampleTeam* team);
  void end_batch(BatchRing::Place& place);

  // Around the taking of a batch.
  void asks();
  void got(const BatchRing::Place& place);

 private:
  bool is_on() const { return tuning_ != nullptr && !tuning_->is_done(); }
  void use_setting();

  LoaderTuning* const tuning_;
  BatchRing& ring_;

  std::atomic<bool> measures_{false};  // how long each batch takes
  std::atomic<uint32_t> wanted_threads_;
  std::atomic<bool> has_no_threads_{false};  // the machine gave fewer than wanted

  // For the maker alone.
  uint64_t begun_ns_ = 0;  // 0: not measured

  // For the taker alone.
  uint64_t asked_ns_ = 0;   // 0: not measured
  uint64_t waited_ns_ = 0;  // time that the ring had waited when it asked
  uint64_t given_ns_ = 0;   // when it got its last batch; 0: none yet
};

}  // namespace lockstep::data
