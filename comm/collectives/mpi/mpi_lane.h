// What a worker knows of the MPI world that it began in; nothing here includes MPI, and no program
// links it (load_mpi_lane.h).
//
// Thread-safety: open() and what is done with its Collectives on one thread at a time, which calls
// MPI; close() and is_open() from any thread at any time.
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

  // The same on all ranks of the world and, by chance, on no others; never 0.
  virtual uint64_t world() const = 0;
  virtual uint32_t rank() const = 0;

  // False for good once a generation was aborted: MPI can neither take back what is under way nor
  // bring in a replacement.
  virtual bool is_open() const = 0;

  // mpi_ranks[r]: where rank r of the generation is in the world. Nothing is sent yet: the first
  // operation meets the peers. kAborted when the generation was closed, or the lane is not open.
  // REQUIRES: `buffer`, null or not, outlives the Collective; of one layout for the whole run.
  virtual Result<std::unique_ptr<Collective>> open(Generation generation, uint32_t rank,
                                                   std::vector<int> mpi_ranks,
                                                   GradientBuffer* buffer) = 0;

  // Aborts what was opened for generations up to `through`, and opens none of them any more.
  virtual void close(Generation through) noexcept = 0;
};

}  // namespace lockstep
