// Sends gradients over MPI while mpirun's world is whole, and over shared memory and TCP from then
// on (comm.backend: mpi).
//
// The peers of every generation connect as they do without MPI. Over that connection they tell each
// other their MPI world and their rank in it. If all are in the same open world, the generation's
// operations go through MPI. If not, they go through the connection itself. No MPI world admits a
// worker that was started again, but the worker takes part like any other, and the bits are the
// same (comm.numerics: exact). A new mpirun brings MPI back.
//
//     connect over host ──▶ all_gather {world, rank} ──▶ one open world ──▶ over MPI
//                                                  └──▶ else ──────────▶ over host
//
// INVARIANTS
//  1. All ranks of a generation choose the same: the choice is a pure function of what all have
//     heard.
//  2. An abort, here or by close(), reaches both connections.
//
// Thread-safety: as HostContext says.
#pragma once

#include <memory>

#include "comm/base/log.h"
#include "comm/collectives/host/host_collective.h"
#include "comm/collectives/mpi/mpi_lane.h"

namespace lockstep {

// `lane` is null in a worker that is in no MPI world. The logger gets a line in every generation
// that tells which way its gradients go.
std::unique_ptr<HostContext> prefer_mpi(std::unique_ptr<HostContext> host,
                                        std::unique_ptr<MpiLane> lane, Logger& logger);

}  // namespace lockstep
