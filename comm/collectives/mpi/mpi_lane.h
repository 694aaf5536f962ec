// The MPI world of a worker. Nothing here includes MPI, and no program links it (load_mpi_lane.h).
//
// Thread-safety: open() and its Collectives on one thread at a time, which calls MPI. close() and
// is_open() from any thread at any time.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "comm/base/ids.h"
#include "comm/base/status.h"
#include "comm/collectives/collective.h"

namespace lockstep {

class MpiLane {
 public:
  virtual ~MpiLane() = default;

  // The same on all ranks of the world and, in all likelihood, on no others. Never 0.
  virtual uint64_t world() const = 0;
  virtual uint32_t rank() const = 0;

  // False for good once a generation was aborted: MPI can neither take back operations under way
  // nor bring in a replacement.
  virtual bool is_open() const = 0;

  // mpi_ranks[r]: the place of rank r of the generation in the world. Sends nothing yet: the first
  // operation meets the peers. kAborted if the generation was closed, or the lane is not open.
  // REQUIRES: `buffer`, null or not, outlives the Collective, and has one layout for the whole run.
  virtual Result<std::unique_ptr<Collective>> open(Generation generation, uint32_t rank,
                                                   std::vector<int> mpi_ranks,
                                                   GradientBuffer* buffer) = 0;

  // Aborts the Collectives of generations up to `through`, and opens none of them any more.
  virtual void close(Generation through) noexcept = 0;
};

}  // namespace lockstep
