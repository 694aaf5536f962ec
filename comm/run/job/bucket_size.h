// The number of bytes of gradients in one sum: comm.bucket_mb, or a size that fits the backend.
//
// Thread-safety: a pure function.
#pragma once

#include <cstdint>

#include "comm/base/byte_units.h"
#include "comm/run/job/job.pb.h"

namespace lockstep {

// The sizes for comm.bucket_mb 0. The thread of backward hands every group over to NCCL, which
// costs it more than the host's sums do (comm/collectives/COST.md).
inline constexpr double kBucketMib = 4;
inline constexpr double kNcclBucketMib = 32;

inline uint64_t bucket_bytes(const wire::CommSpec& comm, bool nccl_sums) {
  const double by_default = nccl_sums ? kNcclBucketMib : kBucketMib;
  const double mib = comm.bucket_mb() != 0 ? comm.bucket_mb() : by_default;
  return static_cast<uint64_t>(mib * static_cast<double>(kMib));
}

}  // namespace lockstep
