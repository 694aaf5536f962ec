// A worker process put together: everything it owns, in the order in which it can be destroyed.
//
//   serve()   the loop's thread: session, /metrics, signals; returns the exit code
//   train()   the training thread: lets its EngineMaker open the data, build the engine and measure
//             its memory where train.global_batch is auto; waits for the global batch, then runs
//             generations
//
// The two run at the same time, so that connecting and building overlap.
//
// Thread-safety: serve() and train() once each, on two threads.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "comm/base/status.h"

namespace lockstep {

class EngineMaker;

struct WorkerOptions {
  std::string run_dir;
  uint32_t local_rank = 0;
  uint32_t gpu = 0;           // among those that can be seen, modulo their number
  std::string gpu_uuid;       // its GPU, whatever number it has; empty: by number
  uint32_t workers_here = 1;  // of this run on this node, with this one
  std::string node;
  uint64_t process = 0;   // Register.process; 0: no agent has drawn one
  std::string log_name;   // empty: worker-LOCAL_RANK
  bool mpi = false;       // begin MPI: the first worker that this process's rank of mpirun keeps
  int in_hand_fd = -1;    // memory from the agent (comm/base/work_in_hand.h); -1: there is none
  int stack_memory = -1;  // where its Python writes frames (python_stacks.h); -1: there is none
};

// From here on a SIGTERM or SIGUSR1 waits until serve() can obey it, instead of killing a process
// that is still starting. Before any thread is started.
void hold_stop_signals();

class Worker {
 public:
  // Reads the run directory and sets the environment, so it comes before any thread is started;
  // everything slow comes later.
  static Result<std::unique_ptr<Worker>> create(const WorkerOptions& options,
                                                std::unique_ptr<EngineMaker> maker);
  ~Worker();

  int serve();
  void train();

 private:
  struct Impl;
  explicit Worker(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockstep
