// Gradients over MPI as long as the world that mpirun made is whole, over shared memory and TCP
// from then on (comm.backend: mpi).
//
// The peers of every generation connect as they do without MPI, and tell each other over that
// connection which MPI world they are in, and as which rank. If all are in the same open one, the
// generation's operations go through it; if not, through the connection itself. So a worker that
// was started again, which no MPI takes in, takes part like any other, and the bits are the same
// (comm.numerics: exact); a new mpirun brings MPI back.
//
//     connect over host ──▶ all_gather {world, rank} ──▶ one open world ──▶ over MPI
//                                                  └──▶ else ──────────▶ over host
//
// INVARIANTS
//  1. All ranks of a generation choose the same: the choice is a pure function of what all were
//     told.
//  2. An abort, here or by close(), reaches both connections.
//
// Thread-safety: as HostContext says.
#pragma once

#include <memory>

#include "comm/base/log.h"
#include "comm/collectives/host/host_collective.h"
#include "comm/collectives/mpi/mpi_lane.h"

namespace lockstep {

// `lane` is null in a worker that is in no MPI world. The logger hears at every generation which
// way its gradients go.
std::unique_ptr<HostContext> prefer_mpi(std::unique_ptr<HostContext> host,
                                        std::unique_ptr<MpiLane> lane, Logger& logger);

}  // namespace lockstep
