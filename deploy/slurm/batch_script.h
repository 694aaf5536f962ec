// The batch script of a run under Slurm. The job trains, and asks Slurm for another turn if it was
// stopped before it was done.
//
//   sbatch SCRIPT ──▶ srun: an agent a task ──▶ 0, 64, ...: the job ends with the run's code
//                       │                  └──▶ 75: scontrol requeue, and the same again
//                       └ before the end of its time, and on preemption, Slurm sends USR1 to the
//                         script, which passes it on: a checkpoint, then 75
//
// The coordinator lives with rank 0, as under srun alone, not with the script. Both would be on the
// first node of the allocation, like the script's srun, without which no task lives. So a
// coordinator outside of srun would survive no more, and ranks would have a second way to find it.
//
// Invariants
//   1. The script holds no secret: the run's token is in the run directory alone.
//   2. Words of a command line reach the program unchanged, whatever characters they hold.
//
// Thread-safety: free functions and values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "comm/base/status.h"

namespace lockstep {

inline constexpr uint32_t kStopBeforeS = 180;

struct BatchRequest {
  std::string name;                    // of the job, for squeue
  std::string program;                 // path of `lockstep`, the same on all nodes
  std::string job_file;                // absolute
  std::vector<std::string> overrides;  // "a.b=c"
  std::string run_dir;                 // absolute
  std::string working_directory;       // the job's relative paths begin here
  uint32_t nodes = 1;
  uint32_t tasks_per_node = 1;
  uint32_t gpus_per_node = 0;
  std::string time;  // as Slurm writes it; empty: the partition's
  std::string partition;
  std::string array;  // "0-3"; empty: one run. %a in run_dir and overrides is a run's number, and
                      // without one in run_dir each run has a directory of its own below it
  uint32_t stop_before_s = kStopBeforeS;  // the end of its time
  std::vector<std::string> slurm_words;   // further arguments of sbatch; they come last and win
};

// kUsage, naming a word that cannot be written, or limits with which the job would never end.
Result<std::string> batch_script(const BatchRequest& request);

// Seconds of Slurm's "90", "90:00", "1:30:00", "2-0", "2-12:30"; none for another form.
std::optional<uint64_t> slurm_seconds(std::string_view time);

}  // namespace lockstep
