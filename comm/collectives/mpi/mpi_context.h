// The data plane of a fixed world under mpirun: a HostContext whose workers reach each other
// through MPI (comm.backend: mpi).
//
// How ranks come to be in one MPI world is the launcher's matter: each worker is a child that
// mpirun's agent has started, calls MPI_Init_thread once, and hands over a communicator. A worker's
// address is its rank in it ("mpi:3"), and travels to its peers as any other address does; so
// ranks of a generation are mapped to ranks of MPI, in any order, and a generation may leave some
// out.
//
// A WORLD ENDS WITH ITS FIRST ABORT. MPI can neither take back messages that are under way nor
// bring in a replacement (its MPI_Init aborts), so after a death, or a close() of a generation in
// which a Collective lives, connect() returns kCheckpointed: the workers end with exit code 75, and
// a new mpirun resumes from the newest checkpoint. Planned changes (a member leaves at a step
// boundary) go on in the same world: their Collective is destroyed without an abort.
//
// Thread-safety: as HostContext says; calls to MPI come from the threads that connect and that use
// or destroy a Collective, one at a time, so MPI must have been begun with MPI_THREAD_SERIALIZED at
// least. close() and abort() call no MPI.
#pragma once

#define OMPI_SKIP_MPICXX 1
#include <mpi.h>

#include <memory>

#include "comm/base/status.h"
#include "comm/collectives/host/host_collective.h"

namespace lockstep {

// `comm` is used by nothing else from now on, and is not freed. `fast`: sums in any order
// (comm.numerics: fast). kConfig when MPI was not begun, or for fewer threads than are needed.
Result<std::unique_ptr<HostContext>> make_mpi_context(MPI_Comm comm, bool fast);

}  // namespace lockstep
