// The batches between the thread that makes them and the one that takes them: some ready, one in
// the making, one in the taker's hands.
//
//   wait_for_place() ──▶ made() ──▶ ready, in order ──▶ take() ──▶ held until the next take()
//        ▲                                                            │
//        └───────────────────── free places ◀──────────────────────────┘
//
// INVARIANTS
//  R1 take() gives the batches in the order in which they were made, then the end or the failure.
//  R2 At most ahead() are ready. A batch stays where it is while it is made, ready or held, also
//     when more memory comes.
//  R3 Once so many are ready, the maker sleeps until half are gone: one wake-up fills several, and
//     who works on the same core is interrupted less often.
//
// Memory is allocated at the start, and when set_ahead() asks for more than ever before; it goes
// with the ring.
//
// Thread-safety: wait_for_place(), made() and end_with() from one thread; take() and set_ahead()
// from another one; the rest from any.
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
#include "data/read/batch.h"
#include "data/read/batch_memory.h"

namespace lockstep::data {

class BatchRing {
 public:
  struct Sizes {
    uint64_t samples = 0;  // of the largest batch
    uint64_t input_bytes = 0;
    uint64_t labels_bytes = 0;  // of a sample, both
  };
  struct Place {
    Batch batch;
    std::byte* inputs = nullptr;
    int64_t* labels = nullptr;
    uint64_t make_ns = 0;  // its maker's business
  };

  // kConfig as BatchMemory::make(). REQUIRES: `ahead` is not 0.
  static Result<std::unique_ptr<BatchRing>> make(const Sizes& sizes, uint32_t ahead);

  // Where the next batch goes. Null: stop() was called.
  Place* wait_for_place();
  // What that place holds is ready. False: stop() was called.
  bool made();
  // There is nothing behind what was made.
  void end_with(Status status);

  // The next batch; waits for it. Null at the end, which may be a failure.
  Result<const Place*> take();

  // From here on as many may be ready. False, and nothing changes: more than at the start need
  // more than limits::kTunedBatchBytes, or than the machine has.
  bool set_ahead(uint32_t ahead);
  uint32_t ahead() const;

  uint32_t ready() const;
  uint64_t wait_ns() const { return waited_ns_; }  // total time take() has waited

  void stop();

 private:
  explicit BatchRing(const Sizes& sizes) : sizes_(sizes) {}
  Status add_places(uint64_t count);

  const Sizes sizes_;

  mutable std::mutex mutex_;
  std::condition_variable space_;  // the taker took enough, more may be ready, or stop
  std::condition_variable came_;   // a batch was made, or all are
  std::vector<BatchMemory> memory_;
  std::deque<Place> places_;  // one more than ever were to be ready, which the taker holds
  std::vector<Place*> free_;  // the last one is the next: what was used last is in the cache
  std::deque<Place*> ready_;
  Place* making_ = nullptr;
  Place* held_ = nullptr;
  uint32_t ahead_ = 0;
  bool all_made_ = false;
  Status failure_;  // of the batch after the last one that was made
  bool stop_ = false;

  std::atomic<uint64_t> waited_ns_{0};
};

}  // namespace lockstep::data
