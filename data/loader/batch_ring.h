// The batches between the thread that makes them and the thread that takes them: some ready, one
// being made, one held by the taker.
//
//   wait_for_place() ──▶ made() ──▶ ready, in order ──▶ take() ──▶ held until the next take()
//        ▲                                                            │
//        └───────────────────── free places ◀──────────────────────────┘
//
// INVARIANTS
//  R1 take() gives the batches in the order in which they were made, then the end or the failure.
//  R2 At most ahead() are ready. A batch does not move while it is made, ready or held, also not
//     when the ring gets more memory.
//  R3 When ahead() are ready, the maker sleeps until half are gone. One wake-up then fills several
//     places, and interrupts other threads of the core less often.
//
// The ring allocates memory at the start, and when set_ahead() asks for more than ever before. It
// frees nothing before its end. A shared batch keeps its memory as long as a caller holds the
// batch, also beyond the ring's end. The maker takes other places first. If callers hold all places
// that are free, one of them gets fresh memory. Memory from one allocation is freed together: one
// batch may keep the memory of its neighbours.
//
// Thread-safety: wait_for_place(), made() and end_with() from one thread; take(), share() and
// set_ahead() from another one; the rest from any. Any thread may let go what share() gave.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "comm/base/status.h"
#include "data/loader/batch.h"
#include "data/loader/batch_memory.h"

namespace lockstep::data {

class BatchRing {
 public:
  struct Sizes {
    uint64_t samples = 0;       // of the largest batch
    uint64_t input_bytes = 0;   // of a sample
    uint64_t labels_bytes = 0;  // of a sample
  };
  struct Place {
    Batch batch;
    std::byte* inputs = nullptr;
    int64_t* labels = nullptr;
    uint64_t make_ns = 0;                                // for the maker
    std::shared_ptr<const BatchMemory> memory = {};      // of inputs and labels
    std::shared_ptr<std::atomic<bool>> given_back = {};  // null: the batch was not shared
  };

  // kConfig as BatchMemory::make(). REQUIRES: `ahead` is not 0.
  static Result<std::unique_ptr<BatchRing>> make(const Sizes& sizes, uint32_t ahead);

  // Waits for the place of the next batch. Null: stop() was called, or there is no fresh memory
  // where it is needed, and take() will say so with kConfig.
  Place* wait_for_place();
  // The batch in that place is ready. False: stop() was called.
  bool made();
  // The last batch was the last one.
  void end_with(Status status);

  // Waits for the next batch. Null at the end; the failure, if the end is one.
  Result<const Place*> take();
  // The batch that take() gave last. It stays valid as long as a caller holds it. REQUIRES: there
  // is one, and share() was not called for it yet.
  std::shared_ptr<const Batch> share();

  // From here on so many may be ready. False, and nothing changes, if they need more memory than
  // limits::kTunedBatchBytes or than the machine has.
  bool set_ahead(uint32_t ahead);
  uint32_t ahead() const;

  uint32_t ready() const;
  uint64_t wait_ns() const { return waited_ns_; }  // total time take() has waited

  void stop();

 private:
  explicit BatchRing(const Sizes& sizes) : sizes_(sizes) {}
  Status add_places(uint64_t count);
  Result<std::shared_ptr<const BatchMemory>> memory_for(uint64_t batches) const;
  Status renew(Place& place) const;
  Status choose_place();

  const Sizes sizes_;

  mutable std::mutex mutex_;
  std::condition_variable space_;  // the taker took enough, more may be ready, or stop
  std::condition_variable came_;   // a batch was made, or all are
  std::deque<Place> places_;       // one more than may be ready: the one that the taker holds
  std::vector<Place*> free_;       // used from the back: the place used last is in the cache
  std::deque<Place*> ready_;
  Place* making_ = nullptr;
  Place* held_ = nullptr;
  uint64_t batch_bytes_ = 0;
  uint32_t ahead_ = 0;
  bool all_made_ = false;
  Status failure_;  // of the batch after the last one that was made
  bool stop_ = false;

  std::atomic<uint64_t> waited_ns_{0};
};

}  // namespace lockstep::data
