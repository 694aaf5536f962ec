// Reads from the environment what a launcher tells each process: its rank and their number. The
// variables of the innermost launcher count. The first row with a variable set is the launcher's:
//
//   by hand   LOCKSTEP_RANK, LOCKSTEP_WORLD_SIZE, LOCKSTEP_LOCAL_RANK, LOCKSTEP_LOCAL_WORLD_SIZE
//   Open MPI  OMPI_COMM_WORLD_RANK, _SIZE, _LOCAL_RANK, _LOCAL_SIZE; before Slurm's, which inside
//             an allocation describe mpirun's daemons, not ranks. Without mpirun's parameter
//             orte_allowed_exit_without_sync all ranks end with the first process that dies after
//             it has begun MPI
//   Hydra     PMI_RANK, PMI_SIZE, MPI_LOCALRANKID, MPI_LOCALNRANKS: mpiexec of MPICH and Intel MPI.
//             It sets nothing that tells one launch from another, so LOCKSTEP_LAUNCH_ID must.
//             PMI_RANK without the local rank comes last: srun sets it as well
//   torchrun  PET_NODE_RANK, PET_NNODES, PET_NPROC_PER_NODE: one process a node, so many workers
//   plain     RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE
//   pods      JOB_COMPLETION_INDEX of an Indexed Job on Kubernetes, LOCKSTEP_PODS: how many keep
//             workers. LOCKSTEP_POD_ROLE: coordinator is rank 0 without workers, worker the rank
//             after its index; without one the index is the rank
//   srun      SLURM_PROCID, SLURM_STEP_NUM_TASKS, SLURM_LOCALID, SLURM_STEP_TASKS_PER_NODE; only
//             within a step (SLURM_STEP_ID): in the batch script they name nothing. If a
//             process sees fewer GPUs (CUDA_VISIBLE_DEVICES) than the job has here
//             (SLURM_GPUS_ON_NODE), they are its own, as by --gpus-per-task
//
// The launch's name, which no other launch has, is LOCKSTEP_LAUNCH_ID, else made of variables that
// the launcher sets alike for all processes. On Kubernetes it is the Job's name: a new pod belongs
// to the launch of the pod that it replaces.
//
// A variable of a launcher that has no row is an error: its processes would be taken for as many
// runs.
//
// Errors: kUsage, naming variable and value.
//
// Thread-safety: pure functions and values.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "comm/base/status.h"

namespace lockstep {

struct LaunchEnv {
  std::string launcher;  // for messages: "mpirun"; empty: no launcher
  uint32_t rank = 0;     // of this process among `size`
  uint32_t size = 1;
  std::optional<uint32_t> local_rank;  // among the `local_size` on this host
  uint32_t local_size = 1;
  std::optional<uint32_t> workers;  // of each process; none: not said
  uint32_t own_gpus = 0;            // only this process sees them; 0: all on this host see the same
  uint32_t mpi_ranks = 0;           // one MPI world, of which a rank may die: all of mpirun's where
                                    // it was told so; 0: there is none
  bool leader_keeps_workers = true;   // rank 0 keeps workers, too
  bool are_ranks_made_again = false;  // each by itself, in the same launch, until it ends with 0
  std::string launch_id;              // the same on all ranks of one launch, on no other; empty if
                                      // there is only one, which is not made again
  bool is_launched() const { return !launcher.empty(); }
  uint32_t ranks_with_workers() const { return leader_keeps_workers ? size : size - 1; }
};

// Returns a variable's value; null or empty: not set.
using ReadVariable = std::function<const char*(const char* name)>;

Result<LaunchEnv> read_launch_env(const ReadVariable& read);

// True for a variable by which a launcher tells a process its place in a group: the variables
// above, the variables of launchers without a row, and the meeting point of torchrun. An agent
// keeps them from scripts, whose libraries would open a process group of their own.
bool is_launch_variable(std::string_view name);

// The name that the coordinator knows this machine by: LOCKSTEP_NODE, such as a pod's name, which
// its replacement does not have; else the host name.
std::string node_name(const ReadVariable& read);

}  // namespace lockstep
