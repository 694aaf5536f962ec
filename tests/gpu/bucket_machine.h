// The machine of bucket_test.cc: one with GPUs (bucket_machine.cc), or the stand-ins of tests/cuda.
//
// Thread-safety: open_machine() once at a time; the members as they say.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "comm/base/status.h"
#include "comm/collectives/nccl/nccl_api.h"

namespace lockstep::testing {

struct BucketMachine {
  uint32_t gpus = 0;
  uint64_t bucket_bytes = 0;  // of the largest kind of bucket, without the cut that it has more
  nccl::NcclApi api;
  std::function<bool()> is_hopeless;  // no thread that waits now can go on; any thread
  // The calls that NCCL would not have allowed. Ask after all ranks have ended.
  std::function<std::vector<std::string>()> misuses;
};

// Errors: kConfig without GPUs or NCCL.
Result<BucketMachine> open_machine();

}  // namespace lockstep::testing
