// Takes this process into the MPI world of the mpirun that has started its agent, through the
// module beside the program.
//
// Thread-safety: once in a process, before other threads are started.
#pragma once

#include <memory>
#include <string>

#include "comm/base/status.h"
#include "comm/collectives/mpi/mpi_lane.h"

namespace lockstep {

// Returns when the workers of all ranks of mpirun are here. Null outside mpirun. MPI's TCP stays on
// `interface`. `fast`: sums in any order. kConfig, with what to do, where there is no module or no
// Open MPI. An MPI that cannot begin ends the process itself.
Result<std::unique_ptr<MpiLane>> open_mpi(const std::string& interface, bool fast);

}  // namespace lockstep
