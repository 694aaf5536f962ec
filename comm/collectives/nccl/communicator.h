// One NCCL communicator, from its making to its end. Everything but its end is non-blocking: NCCL
// answers "in progress", and each wait watches the deadline and whether the generation is closed.
//
//   init ─▶ ready ─▶ stop: nothing of it runs any more ─▶ free
//      └───────────────────┴─ ncclCommAbort: both at once, if the library cannot revoke, the
//                             communicator never got ready, or its last group has not ended well
//
// INVARIANTS
//  M1 NCCL frees it exactly once. The destructor stops and frees what has not ended, so a failed
//     init() leaks nothing.
//  M2 stop() may come as soon as this rank's own generation is closed, whatever its peers do. An
//     aborted kernel still advances its neighbours' counters, so neighbours may finish with
//     garbage. They apply nothing of it: this rank has not agreed to the step (README.md).
//  M3 After stop(), NCCL reads and writes none of the memory it was given.
//  M4 No communicator is revoked whose last group failed or is under way: NCCL 2.28.9 frees that
//     group's job, and completes it later.
//
// Thread-safety: one thread at a time, which also calls the functions of `Wait`. stop() and free()
// block as long as NCCL does, so they belong on a side thread.
#pragma once

#include <functional>

#include "comm/base/clock.h"
#include "comm/base/limits.h"
#include "comm/base/status.h"
#include "comm/collectives/nccl/nccl_api.h"

namespace lockstep::nccl {

// How long to wait for NCCL, and what ends the wait.
struct Wait {
  const Clock& clock;
  int deadline_ms = 0;  // for one operation
  std::function<bool()> is_closed;
  std::function<void(int64_t waited_ns)> pause;  // between two looks
};

// How long to sleep before the next look at NCCL. 0: look again at once. NCCL takes a group in tens
// of microseconds, and backward waits meanwhile: a sleep would cost more than the group.
constexpr int64_t sleep_before_next_look_us(int64_t waited_ns) {
  return waited_ns < int64_t{limits::kNcclSpinUs} * 1'000 ? 0 : limits::kNcclPollUs;
}

class Communicator {
 public:
  // `wait`: for init() and every group(). Its clock outlives the communicator.
  Communicator(const NcclApi& api, Wait wait) : api_(api), wait_(std::move(wait)) {}
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  // All `world` ranks call it once, with the id that one of them made. kTimeout; kAborted: closed,
  // or a peer is gone, which NCCL also calls a system, remote or internal error; kInternal: this
  // worker's own GPU or call failed.
  Status init(const ncclUniqueId& id, uint32_t rank, uint32_t world);

  // Maps the memory of all ranks of a node into each of them, so a sum reads its peers' memory and
  // writes it without copies. All ranks call it, with as many bytes of memory from ncclMemAlloc().
  // If NCCL does not support it, all ranks go on without. Errors: as init(); a rank that fails may
  // leave its peers waiting until their deadline.
  Status register_window(void* data, size_t bytes);

  // Runs `enqueue` as one NCCL group and waits until NCCL has taken all of it. Errors: as init(),
  // because NCCL connects to a peer when it first has something for it.
  Status group(const std::function<ncclResult_t(ncclComm_t)>& enqueue);

  // The error of an earlier operation, if any, as init(). kAborted after stop().
  Status health();
  // health() has found that this rank's own side failed, such as its network adapter. At its peers
  // NCCL then finds a remote error, or nothing.
  bool broke_here() const { return broke_here_; }
  // It never got ready, a call failed, or health() has found an error, at whichever rank.
  bool has_failed() const { return has_broken_ || has_loose_group_ || state_ == State::kNew; }

  // Ends whatever runs. No other call but free() may follow.
  void stop() noexcept;
  void free() noexcept;  // REQUIRES: stop()

 private:
  enum class State { kNew, kReady, kStopped, kBroken };

  // Waits while NCCL reports progress.
  Status settle(ncclResult_t result, const char* what) const;
  Status error(ncclResult_t result, const char* what) const;

  const NcclApi api_;
  const Wait wait_;
  ncclComm_t comm_ = nullptr;  // null: not begun, or freed
  State state_ = State::kNew;
  bool broke_here_ = false;
  bool has_broken_ = false;
  bool has_loose_group_ = false;   // the last group, or the window, has not ended well
  ncclWindow_t window_ = nullptr;  // null: none
};

}  // namespace lockstep::nccl
