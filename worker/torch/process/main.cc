// lockstep-worker: one worker of a run. The loop's thread speaks to the coordinator; the training
// thread builds the engine while the session connects, and then trains.
#include <signal.h>

#include <CLI/CLI.hpp>
#include <array>
#include <chrono>
#include <cstdio>
#include <future>
#include <string_view>
#include <thread>

#include "comm/base/build_info.h"
#include "comm/base/descriptors.h"
#include "comm/base/host_name.h"
#include "comm/base/thread_name.h"
#include "comm/environment/process_limit.h"
#include "comm/environment/standard_streams.h"
#include "comm/rpc/asio_transport.h"
#include "worker/process/last_wait.h"
#include "worker/process/worker.h"
#include "worker/torch/doctor/doctor_main.h"
#include "worker/torch/export/export_main.h"
#include "worker/torch/inference/eval_main.h"
#include "worker/torch/inference/generate_main.h"
#include "worker/torch/inference/measure_main.h"
#include "worker/torch/inference/predict_main.h"
#include "worker/torch/process/torch_engine_maker.h"
#include "worker/torch/replay/replay_main.h"

namespace {

constexpr std::chrono::seconds kTrainingThreadMayTake{5};

// The commands of this program besides working in a run, by their first word.
struct WorkerCommand {
  std::string_view name;
  int (*run)(int argc, char** argv);
};
constexpr std::array kCommands = {
    WorkerCommand{"replay", lockstep::replay_main},
    WorkerCommand{"export", lockstep::export_main},
    WorkerCommand{"doctor", lockstep::doctor_main},
    WorkerCommand{"generate", lockstep::generate_main},
    WorkerCommand{"predict", lockstep::predict_main},
    WorkerCommand{"eval", lockstep::eval_main},
    WorkerCommand{"measure", lockstep::measure_main},
};

// The agent handles an interrupt at the terminal; a peer that hangs up and a file that may not grow
// are errors of a call, not the end of the process.
void ignore_signals() {
  for (const int signal : {SIGINT, SIGPIPE, SIGXFSZ}) ::signal(signal, SIG_IGN);
}

int run(int argc, char** argv) {
  lockstep::secure_standard_streams();
  lockstep::explain_missing_threads();
  for (const WorkerCommand& command : kCommands)
    if (argc > 1 && command.name == argv[1]) return command.run(argc - 1, argv + 1);
  lockstep::hold_stop_signals();
  lockstep::WorkerOptions options;
  options.node = lockstep::host_name();
  CLI::App app("One worker of a Lockstep run; started by `lockstep agent`.", "lockstep-worker");
  app.add_option("--run-dir", options.run_dir, "directory of the run")->required();
  app.add_option("--local-rank", options.local_rank, "number of this worker on its node")
      ->required();
  auto* gpu = app.add_option("--gpu", options.gpu,
                             "its GPU, modulo those that can be seen (default: the local rank)");
  app.add_option("--gpu-uuid", options.gpu_uuid,
                 "its GPU by the 32 hex digits of its UUID, whatever number the GPU has");
  app.add_option("--log-name", options.log_name, "of its log (default: worker-LOCAL_RANK)");
  app.add_option("--workers-here", options.workers_here,
                 "workers of the run on this node, which share its memory")
      ->check(CLI::PositiveNumber);
  app.add_option("--node", options.node, "name of this node (default: the host's name)");
  app.add_option("--process", options.process, "number that its agent has drawn for it");
  app.add_flag(
      "--mpi", options.mpi,
      "enter mpirun's MPI world (comm.backend: mpi), which one worker of a rank can, once");
  app.add_option("--in-hand-fd", options.in_hand_fd,
                 "descriptor from the agent, where this worker says which samples it is at");
  app.set_version_flag("--version", std::string(lockstep::build_info().version));
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    constexpr int kUsageExit = 64;
    return app.exit(error) == 0 ? 0 : kUsageExit;
  }
  if (gpu->count() == 0) options.gpu = options.local_rank;
  ignore_signals();
  lockstep::allow_many_descriptors();

  auto worker = lockstep::Worker::create(options, lockstep::torch_engine_maker());
  if (!worker.is_ok()) {
    lockstep::print_error("lockstep-worker: %s\n", worker.status().message().c_str());
    return lockstep::exit_code(worker.status());
  }
  lockstep::Worker& running = **worker;
  std::promise<void> trained;
  std::future<void> training_over = trained.get_future();
  std::thread training([&running, &trained] {
    lockstep::name_this_thread("training");
    running.train();
    trained.set_value();
  });
  const int code = running.serve();
  lockstep::wait_or_leave(training_over, kTrainingThreadMayTake, code);
  training.join();
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  lockstep::end_process(run(argc, argv));
}
