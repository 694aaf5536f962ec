// The MPI world of this process as a lane for gradients (mpi_lane.h).
//
// How ranks come to be in one MPI world is the launcher's matter: each worker is a child of one of
// mpirun's agents, calls MPI_Init_thread once, and hands over a communicator.
//
// A WORLD ENDS WITH ITS FIRST ABORT. MPI can neither take back messages that are under way nor
// bring in a replacement (its MPI_Init aborts), so after a death, or a close() of a generation in
// which a Collective lives, the lane is not open any more. Planned changes (a member leaves at a
// step boundary) go on in the same world: their Collective is destroyed without an abort.
//
// Thread-safety: as MpiLane says; calls to MPI come from the threads that open, use or destroy a
// Collective, one at a time, so MPI must have been begun with MPI_THREAD_SERIALIZED at least.
// close() and abort() call no MPI.
#pragma once

#define OMPI_SKIP_MPICXX 1
#include <mpi.h>

#include <memory>

#include "comm/base/status.h"
#include "comm/collectives/mpi/mpi_lane.h"

namespace lockstep {

// `comm` is used by nothing else from now on, and is not freed. `fast`: sums in any order
// (comm.numerics: fast). Returns when all ranks of `comm` are here. kConfig when MPI was not begun,
// or for fewer threads than are needed.
Result<std::unique_ptr<MpiLane>> open_mpi_world(MPI_Comm comm, bool fast);

}  // namespace lockstep
