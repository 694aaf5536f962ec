// Says which program an agent starts as a worker, and how the worker gets its options:
// lockstep-worker from its flags, a script in Python from one variable.
//
//   lockstep-worker --run-dir DIR --local-rank 0 ...
//   LOCKSTEP_WORKER="run_dir=DIR\nlocal_rank=0\n..." python3 -u -c '...' train.py ARGS...
//   LOCKSTEP_WORKER=... python3 -u -c '...' -m proj.train /src/proj/train.py ARGS...
//
// A script gets no variable of a launcher (is_launch_variable()): the modules that it
// imports would take its process for a rank of that launcher. A worker of ours may have to enter
// mpirun's world.
//
// Thread-safety: values and free functions.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "comm/base/status.h"
#include "comm/run/job/job.pb.h"
#include "deploy/agent/process.h"

namespace lockstep {

struct WorkerLaunch {
  std::vector<std::string> words;     // path of the program, and its first arguments
  std::vector<std::string> env = {};  // ProcessSpec::env
  bool is_script = false;             // LOCKSTEP_WORKER tells it
};

// The value of an environment variable; null: it is not set.
using VariableFn = std::function<const char*(const char* name)>;

// The program that computes models without a script. `directory`: of the running program, ends with
// '/'. kConfig if it is not there, or if no Python has its torch where it is installed as a
// launcher, which is started for that.
Result<std::string> worker_program(const std::string& directory);

// The Python of a script is $LOCKSTEP_PYTHON, else python3 in PATH; kConfig if there is none.
Result<WorkerLaunch> worker_launch(const wire::JobSpec& job, const std::string& directory,
                                   const VariableFn& variable);

// kConfig if the Python of a script is too old, or misses a module that every script needs. Starts
// it for that; does nothing for other workers.
Status check_python(const WorkerLaunch& launch);

// Where that Python imports the top-level package or module `name` from (python_module.h): asks it.
// Empty if it has none, or if there is no Python.
std::string imported_from(const std::string& name, const VariableFn& variable);

struct WorkerOption {
  std::string_view name;  // "local-rank"; "local_rank" for a script
  std::string value;
};

// The process of a worker, but for its output and descriptors. kConfig for a value that a script
// could not read.
Result<ProcessSpec> process_of(const WorkerLaunch& launch,
                               const std::vector<WorkerOption>& options);

// From the end of the run until workers that have not ended are killed (cluster.leave_s).
int64_t leave_ms_of(const wire::JobSpec& job);

}  // namespace lockstep
