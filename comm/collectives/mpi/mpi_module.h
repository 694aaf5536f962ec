// The entry of liblockstep-mpi.so, which is all of Lockstep that links Open MPI. A worker that
// mpirun's agent has started opens it and looks the entry up by name.
//
// Thread-safety: once in a process, before other threads call it.
#pragma once

#include <cstdint>

#include "comm/base/status.h"
#include "comm/collectives/mpi/mpi_lane.h"

namespace lockstep {

// Grows with every change of MpiLane or of what it takes: a worker and a library that were not
// built together must not meet.
inline constexpr uint32_t kMpiModuleVersion = 1;

inline constexpr char kMpiModuleLibrary[] = "liblockstep-mpi.so";
inline constexpr char kMpiModuleEntry[] = "lockstep_enter_mpi_world";

// What the entry gives: a lane, or the reason why there is none. The caller owns both.
struct EnteredWorld {
  uint32_t version = kMpiModuleVersion;
  MpiLane* lane = nullptr;
  Status* error = nullptr;
};

// Begins MPI, and returns when all ranks of mpirun have. The world is never finalized: that would
// wait for those who have died.
using EnterMpiWorld = EnteredWorld (*)(bool fast);

}  // namespace lockstep
