// Between the two threads of a loader: what its tuning wants goes to the one that makes batches,
// and how long they took comes back with them. Without tuning, and once it is done, it looks at no
// clock.
//
// Thread-safety: begin_batch() and end_batch() from the thread that makes batches, asks() and got()
// from the one that takes them.
#pragma once

#include <atomic>
#include <cstdint>

#include "data/read/batch_ring.h"
#include "data/read/loader_tuning.h"
#include "data/read/sample_team.h"

namespace lockstep::data {

class TuningLink {
 public:
  // `tuning` begins here; null: there is none, and `threads` stay. All outlive it.
  TuningLink(LoaderTuning* tuning, uint32_t threads, BatchRing& ring);

  // Around the making of a batch. Gives `team`, where there is one, the threads that are wanted.
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
  std::atomic<bool> has_no_threads_{false};  // as many as were wanted

  // The maker's own.
  uint64_t begun_ns_ = 0;  // 0: not measured

  // The taker's own.
  uint64_t asked_ns_ = 0;   // 0: not measured
  uint64_t waited_ns_ = 0;  // by the ring, until then
  uint64_t given_ns_ = 0;   // when it got its last batch; 0: none yet
};

}  // namespace lockstep::data
