// NCCL in one process and in plain memory, over a CUDA of our own (fake_cuda.h): ranks are threads,
// and a group runs as one kernel on the stream that it was given, some time later.
//
// Habits of the real one (2.28.9) that it has:
//
//  - calls of a non-blocking communicator answer "in progress" first
//  - a communicator that failed to get ready is still there, until it is aborted
//  - a kernel waits for its peers' data until its own communicator is revoked or aborted;
//    then it returns as if it had finished, with what lay in memory, and work after it runs. What
//    it has for its peers arrives there: they take it for the sum
//  - revoke, abort and destroy return when nothing of the communicator runs any more; abort and
//    destroy have freed it then. Revoke frees nothing
//  - a window is memory of ncclMemAlloc(), its handle is written while the call is in progress, and
//    a rank that fails by itself leaves its peers waiting
//  - every call uses the calling thread's device
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "comm/collectives/nccl/nccl_api.h"

namespace lockstep::testing {

// What happened, and what shall happen. There is one for the process, because NCCL's functions are
// plain ones.
class FakeNccl {
 public:
  static FakeNccl& get();
  static nccl::NcclApi api();
  static nccl::NcclApi api_without_revoke();  // before NCCL 2.28.7

  // Forgets everything. Call it only between tests.
  void reset();

  // "rank 1: abort" and the like, in order.
  std::vector<std::string> log();
  void note(int rank, const std::string& what);

  // The number of communicators that are not freed yet.
  int living() const;
  void count(int more);

  // Lets every revoke and abort hang, or go on again.
  void hang(bool does);
  void pass_hang();

  // Lets a rank's calls of a function ("init", "group_end") block, although the communicator is
  // non-blocking; "": of none any more.
  void block(int rank, const std::string& function);
  void pass_block(int rank, const std::string& function);
  void wait_until_blocked();

  // The number of looks at a communicator until it stops being in progress; negative: never.
  int looks_until_ready = 2;
  ncclResult_t outcome = ncclSuccess;  // of the operation in progress
  // Ranks at fault: one cannot begin to connect, one's communicator is never ready, one receives a
  // wrong bit, what one sends never comes. -1: none.
  int cannot_init = -1;
  int never_ready = -1;
  int gets_wrong_bit = -1;
  int loses_data = -1;
  bool makes_no_id = false;
  int cannot_map = -1;      // this rank fails before it has spoken to its peers
  bool notices_end = true;  // a rank that waits for a window of a rank that has ended
  bool has_windows = true;  // false: "success", and no handle

  // Memory of ncclMemAlloc().
  void* allocate(size_t bytes);
  void release(void* memory);
  bool has_allocated(const void* memory, size_t bytes) const;

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> log_;
  int living_ = 0;
  bool hangs_ = false;
  std::map<const std::byte*, std::vector<std::byte>> allocated_;
  int blocks_rank_ = -1;
  std::string blocks_in_;
  bool is_blocked_ = false;
};

void forget_rings();  // of FakeNccl::reset()

}  // namespace lockstep::testing
