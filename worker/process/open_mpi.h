// Enters the MPI world of the mpirun that started this worker's agent, through the module next to
// the program.
//
// Thread-safety: once in a process, before other threads are started.
#pragma once

#include <memory>
#include <string>

#include "comm/base/status.h"
#include "comm/collectives/mpi/mpi_lane.h"

namespace lockstep {

// MPI's TCP stays on `interface`, because it proves nothing and encrypts nothing. Before any thread
// is started: it changes the environment.
void prepare_mpi_environment(const std::string& interface);

// Returns once the workers of all ranks have entered. Null outside mpirun. `fast`: sums in any
// order. kConfig, with what to do, if the module or Open MPI is missing. An MPI that cannot begin
// ends the process itself. REQUIRES: prepare_mpi_environment().
Result<std::unique_ptr<MpiLane>> open_mpi(bool fast);

}  // namespace lockstep
