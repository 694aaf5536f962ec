#include "comm/collectives/mpi/mpi_module.h"

#include <memory>

#include "comm/collectives/mpi/mpi_world.h"

namespace lockstep {
namespace {

Result<std::unique_ptr<MpiLane>> enter(bool fast) {
  int threads = MPI_THREAD_SINGLE;
  MPI_Comm comm = MPI_COMM_NULL;
  if (MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &threads) != MPI_SUCCESS ||
      MPI_Comm_dup(MPI_COMM_WORLD, &comm) != MPI_SUCCESS)
    return Status(Code::kConfig, "mpi: MPI does not start; use comm.backend: host");
  return open_mpi_world(comm, fast);
}

}  // namespace
}  // namespace lockstep

extern "C" __attribute__((visibility("default"))) lockstep::EnteredWorld lockstep_enter_mpi_world(
    bool fast) {
  auto lane = lockstep::enter(fast);
  lockstep::EnteredWorld entered{lockstep::kMpiModuleVersion, nullptr, nullptr};
  if (lane.is_ok())
    entered.lane = lane->release();
  else
    entered.error = new lockstep::Status(lane.status());
  return entered;
}
