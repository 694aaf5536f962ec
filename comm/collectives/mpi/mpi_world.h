// The MPI world of this process as a lane for gradients (mpi_lane.h).
//
// The launcher brings ranks into one MPI world: each worker is a child of one of mpirun's agents,
// calls MPI_Init_thread once, and hands over a communicator.
//
// A WORLD ENDS WITH ITS FIRST ABORT. MPI can neither take back messages under way nor bring in a
// replacement (its MPI_Init aborts). So after a death, or a close() of a generation with a living
// Collective, the lane is not open any more. Planned changes (a member leaves at a step boundary)
// go on in the same world: their Collective is destroyed without an abort.
//
// Thread-safety: as in mpi_lane.h. Calls to MPI come from the threads that open, use or destroy a
// Collective, one at a time, so MPI must have begun with at least MPI_THREAD_SERIALIZED. close()
// and abort() do not call MPI.
#pragma once

#define OMPI_SKIP_MPICXX 1
#include <mpi.h>

#include <memory>

#include "comm/base/status.h"
#include "comm/collectives/mpi/mpi_lane.h"

namespace lockstep {

// From now on nothing else uses `comm`, and it is not freed. `fast`: sums in any order
// (comm.numerics: fast). Returns when all ranks of `comm` are here. kConfig if MPI was not begun,
// or was begun for fewer threads than needed.
Result<std::unique_ptr<MpiLane>> open_mpi_world(MPI_Comm comm, bool fast);

}  // namespace lockstep
