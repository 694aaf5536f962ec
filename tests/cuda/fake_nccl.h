// NCCL in one process and in plain memory: ranks are threads, a group runs whole in group_end().
// Every call answers "in progress" first, as a non-blocking communicator may.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "comm/collectives/nccl/nccl_api.h"

namespace lockstep::testing {

// What happened, and what shall happen. There is one for the process, because NCCL's functions are
// plain ones.
class FakeNccl {
 public:
  static FakeNccl& get();
  static nccl::NcclApi api();

  // Forgets everything. Call it only between tests.
  void reset();

  // "rank 1: abort" and the like, in order for each rank.
  std::vector<std::string> log();
  void note(int rank, const std::string& what);

  // The number of looks at a communicator until it stops being in progress; negative: never.
  int looks_until_ready = 2;
  ncclResult_t outcome = ncclSuccess;  // of the operation in progress
  // Ranks at fault: one cannot begin to connect, one's communicator is never ready, one receives a
  // wrong bit. -1: none.
  int cannot_init = -1;
  int never_ready = -1;
  int gets_wrong_bit = -1;
  bool makes_no_id = false;

 private:
  std::mutex mutex_;
  std::vector<std::string> log_;
};

}  // namespace lockstep::testing
