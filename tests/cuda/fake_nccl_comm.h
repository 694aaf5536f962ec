// The communicator of FakeNccl, for its own sources only.
#pragma once

#include <nccl.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "tests/cuda/fake_cuda.h"
#include "tests/cuda/fake_nccl.h"

namespace lockstep::testing {

struct Message {
  std::vector<std::byte> bytes;
  bool is_registered = false;  // the sender's memory
};

// A rank's part in an all-reduce.
struct Word {
  std::vector<std::byte> bytes;  // of its input
  float* out = nullptr;
  bool is_window = false;  // peers read and write `out` itself
};

// All ranks of one communicator.
struct Ring {
  explicit Ring(int ranks) : words(static_cast<size_t>(ranks)) {}
  std::mutex mutex;
  std::condition_variable changed;
  std::map<std::pair<int, int>, std::deque<Message>> wire;
  std::vector<std::deque<Word>> words;  // by rank: of every all-reduce so far
  std::set<size_t> torn;          // all-reduces from which a rank returned before all were there
  std::map<size_t, size_t> left;  // ranks that have done their part of one over windows
  size_t windows = 0;             // ranks that registered one
  bool is_broken = false;         // a rank has ended
};

// The parts of a communicator that kernels need: kernels may outlast it.
struct Side {
  std::shared_ptr<Ring> ring;
  int rank = 0;
  std::atomic<bool> is_aborted{false};
};

}  // namespace lockstep::testing

struct ncclComm {
  std::shared_ptr<lockstep::testing::Side> side;
  int device = 0;
  int channels = 0;
  uint64_t bytes = 0;                             // of the GPU that it takes
  std::map<const std::byte*, size_t> registered;  // bytes
  std::set<int> peers;                            // to which it has connected
  int looks_left = 0;  // until it stops being in progress; negative: never
  bool is_revoked = false;
  ncclResult_t failed = ncclSuccess;  // the failure, which stays
  uint64_t made_in = 0;               // FakeNccl::epoch()
  size_t reduced = 0;                 // all-reduces of this rank so far
  const std::byte* window = nullptr;  // the memory that all ranks have mapped
  size_t window_bytes = 0;
  cudaStream_t stream = nullptr;
  uint64_t posted = 0;                    // its end on the stream
  bool has_loose_group = false;           // the last group has not ended well
  std::function<ncclResult_t()> pending;  // work for its own thread; empty: none
};

namespace lockstep::testing {

// ncclSuccess if a call may use it now. A refusal is noted as misuse.
ncclResult_t may_use(ncclComm_t comm, const char* call);

// Answers "in progress" until the looks are done and `work` answers otherwise. The communicator's
// own thread runs `work`, on its device, as late as NCCL may: at the look that would say success.
ncclResult_t in_progress(ncclComm_t comm, std::function<ncclResult_t()> work = {});

// Takes memory of the GPU. False: there is not enough.
bool take_memory(ncclComm_t comm, uint64_t bytes);

// The depth of the calling thread's open groups.
int& group_depth();

// The functions for transfers.
ncclResult_t fake_send(const void* data, size_t count, ncclDataType_t type, int peer,
                       ncclComm_t comm, cudaStream_t stream);
ncclResult_t fake_receive(void* data, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                          cudaStream_t stream);
ncclResult_t fake_all_reduce(const void* in, void* out, size_t count, ncclDataType_t type,
                             ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream);
ncclResult_t fake_group_start();
ncclResult_t fake_group_end();

}  // namespace lockstep::testing
