// NCCL in one process and in plain memory, over a CUDA of our own (fake_cuda.h): ranks are threads,
// and a group runs as one kernel on the stream that it was given, some time later.
//
// It has these habits of the real NCCL (2.28.9):
//
//  - calls of a non-blocking communicator answer "in progress" first
//  - a communicator that failed to get ready is still there, until it is aborted
//  - a kernel waits for its peers' data until its own communicator is revoked or aborted;
//    then it returns as if it had finished, with what lay in memory, and work after it runs. Its
//    own data arrive at its peers, who take them for the sum
//  - revoke, abort and destroy return when nothing of the communicator runs any more; abort and
//    destroy have freed it then. Revoke frees nothing
//  - a window is memory of ncclMemAlloc(), its handle is written while the call is in progress, and
//    a rank that fails by itself leaves its peers waiting
//  - group_end() only begins: a thread of its own connects to new peers and hands the kernel to the
//    stream, at the latest at the look that says success
//  - revoke after a group that has not ended well uses what the group has freed; abort does not
//  - it refuses operations of a communicator that is in progress or revoked, and to destroy one
//    that failed, or in an open group. After a failed destroy the thread's group stays open
//  - init and the first transfer with a peer take memory of the GPU (kInitBytes; kChannelBytes for
//    each channel), and fail for want of it. Then only this rank knows
//  - memory is registered or not on each side, and a transfer between both kinds never ends.
//    Deregistering does not work after revoke: peers keep what they have mapped
//  - transfers of different sizes never end, nor do all-reduces of which only some are in windows
//  - an all-reduce adds in an order that depends on the element. Over windows, ranks read and write
//    each other's memory, and all begin and end together
//  - only one rank may see an error (fail())
//  - every call uses the calling thread's device
//
// misuses() lists calls that the real one refuses, answers with nonsense or never ends.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "comm/collectives/nccl/nccl_api.h"

namespace lockstep::testing {

// The record of calls, and the failures to come. There is one for the process, because NCCL's
// functions are plain ones.
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

  // Calls that the real one does not allow; "rank 1: send after revoke". A test without intended
  // misuse expects that this is empty.
  std::vector<std::string> misuses();
  ncclResult_t misuse(int rank, const std::string& what);  // notes it, and refuses
  // True once something waits that can end only with its communicator.
  bool is_hopeless() const;
  void hang_for_ever(const std::string& why);

  // The number of communicators that are not freed yet.
  int living() const;
  void count(int more);

  // Lets every revoke and abort hang, or go on again.
  void hang(bool does);
  void pass_hang();

  // Lets a rank's calls of a function ("init", "group_end") block, although the communicator is
  // non-blocking; "": blocks none any more.
  void block(int rank, const std::string& function);
  void pass_block(int rank, const std::string& function);
  void wait_until_blocked();

  // From now on this rank finds that its communicator has failed; others may not.
  void fail(int rank, ncclResult_t how);
  void heal();  // new communicators are well again
  uint64_t epoch() const;
  ncclResult_t outcome_of(int rank, ncclResult_t failed, uint64_t made_in) const;

  // The memory of a rank's GPU that NCCL takes. False: there is not so much.
  static constexpr uint64_t kInitBytes = uint64_t{400} << 20;
  static constexpr uint64_t kChannelBytes = uint64_t{10} << 20;  // of one peer and channel (2.28.9)
  bool take(int rank, int64_t more);
  uint64_t most_taken(int rank) const;
  uint64_t gpu_bytes = UINT64_MAX;  // of each GPU

  // The number of looks at a communicator until it stops being in progress; negative: never.
  int looks_until_ready = 2;
  ncclResult_t outcome = ncclSuccess;  // of the operation in progress
  // Ranks at fault, in this order: cannot begin to connect, has a communicator that is never ready,
  // receives a wrong bit, sends data that never arrive. -1: none.
  int cannot_init = -1;
  int never_ready = -1;
  int gets_wrong_bit = -1;
  int loses_data = -1;
  size_t wrong_from_bytes = 0;  // only data as long as this get it
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
  std::vector<std::string> misuses_;
  bool is_hopeless_ = false;
  std::map<int, std::pair<ncclResult_t, uint64_t>> failed_;  // with the epoch of the failure
  uint64_t epoch_ = 0;                                       // heal() begins the next one
  std::map<int, int64_t> taken_;
  std::map<int, int64_t> most_taken_;
  int living_ = 0;
  bool hangs_ = false;
  std::map<const std::byte*, std::vector<std::byte>> allocated_;
  int blocks_rank_ = -1;
  std::string blocks_in_;
  bool is_blocked_ = false;
};

// ncclCommRegister() and ncclCommDeregister(), which we do not call.
ncclResult_t fake_register(ncclComm_t comm, void* data, size_t bytes, void** handle);
ncclResult_t fake_deregister(ncclComm_t comm, void* handle);

void forget_rings();  // of FakeNccl::reset()

}  // namespace lockstep::testing
