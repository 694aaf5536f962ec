// The entry of liblockstep-mpi.so, the only part of Lockstep that links Open MPI. A worker that
// mpirun's agent has started opens it and looks the entry up by name.
//
// Thread-safety: once in a process, before other threads call it.
#pragma once

#include <cstdint>

#include "comm/base/status.h"
#include "comm/collectives/mpi/mpi_lane.h"

namespace lockstep {

// Grows with every change of MpiLane or its arguments: a worker and a library of different builds
// must not meet.
inline constexpr uint32_t kMpiModuleVersion = 1;

inline constexpr char kMpiModuleLibrary[] = "liblockstep-mpi.so";
inline constexpr char kMpiModuleEntry[] = "lockstep_enter_mpi_world";

// The entry's result: a lane, or the reason why there is none. The caller owns both. A plain C
// struct, as the entry has a C name.
struct EnteredWorld {
  uint32_t version;  // kMpiModuleVersion
  MpiLane* lane;
  Status* error;
};

// Begins MPI, and returns when all ranks of mpirun have begun. Never finalizes the world, which
// would wait for the dead.
using EnterMpiWorld = EnteredWorld (*)(bool fast);

}  // namespace lockstep
