// Enters the MPI world of the mpirun that started this worker's agent, through the module beside
// the program.
//
// Thread-safety: once in a process, before other threads are started.
#pragma once

#include <memory>
#include <string>

#include "comm/base/status.h"
#include "comm/collectives/mpi/mpi_lane.h"

namespace lockstep {

// Returns once the workers of all ranks have entered. Null outside mpirun. MPI's TCP stays on
// `interface`. `fast`: sums in any order. kConfig, with what to do, if the module or Open MPI is
// missing. An MPI that cannot begin ends the process itself.
Result<std::unique_ptr<MpiLane>> open_mpi(const std::string& interface, bool fast);

}  // namespace lockstep
