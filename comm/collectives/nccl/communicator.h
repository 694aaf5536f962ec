// One NCCL communicator, from its making to its end. Everything is non-blocking: NCCL answers "in
// progress", and each wait watches the deadline and whether the generation is closed.
//
//   init / shrink -> ready -> finalize (nothing in flight) | abort (anything may be)
//
// INVARIANTS
//  M1 It ends exactly once: by finalize() if that succeeds, else by abort(). The destructor aborts
//     a communicator that has not ended.
//  M2 Nobody calls abort() before every survivor has closed its gate (after "start"): an aborted
//     kernel still advances its neighbours' counters, so they may finish with garbage.
//
// Thread-safety: one thread at a time, which also calls `Wait::is_closed`.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "comm/base/clock.h"
#include "comm/base/status.h"
#include "comm/collectives/nccl/nccl_api.h"

namespace lockstep::nccl {

// How long to wait for NCCL, and what ends the wait.
struct Wait {
  const Clock& clock;
  int deadline_ms = 0;  // for one operation
  std::function<bool()> is_closed;
  std::function<void()> pause;  // between two looks
};

class Communicator {
 public:
  // All `world` ranks call it with the id that one of them made. kTimeout, kAborted (closed, or a
  // peer is gone), or kInternal with NCCL's words.
  static Result<std::unique_ptr<Communicator>> init(const NcclApi& api, const ncclUniqueId& id,
                                                    uint32_t rank, uint32_t world, Wait wait);
  ~Communicator();
  Communicator(const Communicator&) = delete;

  // A communicator without the `excluded` ranks. All others make it together and keep their order.
  // `was_aborted`: operations of this communicator may hang, so shrink() ends them first.
  Result<std::unique_ptr<Communicator>> shrink(std::vector<int> excluded, bool was_aborted,
                                               Wait wait);

  // Lets NCCL read and write the memory without copies of its own. If NCCL does not support it, it
  // says so with an error that is not fatal, and nothing is registered.
  void register_buffer(void* data, size_t bytes);

  // Runs `enqueue` as one NCCL group and waits until NCCL has taken all of it.
  Status group(const std::function<ncclResult_t(ncclComm_t)>& enqueue);

  // The error of an earlier operation, if any: kAborted, because a dead peer looks like it.
  Status health() const;

  // `wait` is an argument, because the generation's own may be closed by now.
  Status finalize(const Wait& wait);
  void abort() noexcept;

 private:
  Communicator(const NcclApi& api, Wait wait) : api_(api), wait_(std::move(wait)) {}

  // Waits while NCCL reports that `comm` is in progress.
  Status settle(ncclResult_t result, const char* what, ncclComm_t comm, const Wait& wait) const;
  Status error(ncclResult_t result, const char* what) const;

  const NcclApi api_;
  const Wait wait_;
  ncclComm_t comm_ = nullptr;  // null: ended
  std::vector<void*> registered_;
};

}  // namespace lockstep::nccl
