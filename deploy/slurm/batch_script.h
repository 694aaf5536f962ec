// The batch script of a run under Slurm: a job that trains, and that asks Slurm for another turn
// whenever it was stopped before it was done.
//
//   sbatch SCRIPT ──▶ srun: an agent a task ──▶ 0, 64, ...: the job ends with the run's code
//                       │                  └──▶ 75: scontrol requeue, and the same again
//                       └ before the end of its time, and when it is preempted, Slurm sends USR1 to
//                         the script, which passes it on: a checkpoint, then 75
//
// Where the coordinator lives: with rank 0, as under srun alone, not with the script. Both are on
// the first node of the allocation, and the script's srun is there too, without which no task
// lives: a coordinator outside of srun would survive no loss of a node that this one does not. So
// there is one way in which ranks find it (launch_record.h), and one who starts it again.
//
// Invariants
//   1. The script holds no secret: the run's token lies in the run directory alone.
//   2. Words of a command line reach the program as they were given, whatever they hold.
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
  std::string working_directory;       // that of the job's relative paths
  uint32_t nodes = 1;
  uint32_t tasks_per_node = 1;
  uint32_t gpus_per_node = 0;
  std::string time;  // as Slurm writes it; empty: the partition's
  std::string partition;
  std::string array;  // "0-3"; empty: one run. %a in run_dir and overrides is a run's number, and
                      // without one in run_dir each run has a directory of its own below it
  uint32_t stop_before_s = kStopBeforeS;  // the end of its time
  std::vector<std::string> slurm_words;   // more of sbatch's arguments, last and so strongest
};

// kUsage naming what cannot be written, or what would never come to an end.
Result<std::string> batch_script(const BatchRequest& request);

// Seconds of Slurm's "90", "90:00", "1:30:00", "2-0", "2-12:30"; none for what is none of these.
std::optional<uint64_t> slurm_seconds(std::string_view time);

}  // namespace lockstep
