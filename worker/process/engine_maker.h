// Builds the engine and the data of a worker. A Worker knows neither the formats of data nor the
// library that computes; the program that makes the worker does.
//
// Thread-safety: the training thread, except for creation and destruction.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "comm/base/clock.h"
#include "comm/base/log.h"
#include "comm/base/status.h"
#include "comm/run/job/job.pb.h"
#include "comm/wire/control.pb.h"
#include "metrics/exporters/worker_metrics.h"
#include "worker/engine/engine.h"
#include "worker/process/worker.h"

namespace lockstep {

class DeviceComm;

// The parts that a worker gives the maker. All references outlive the maker.
struct EngineMakerHost {
  const wire::JobSpec& job;
  const WorkerOptions& options;
  Logger& logger;
  const Clock& clock;
  WorkerMetrics& metrics;
  Engine::BufferFactory make_buffer;
  std::function<void(const Status&)> on_stuck;  // DeviceCommOptions
};

// The parts that a worker gets. The pointers are the maker's, and live as long as the maker.
struct MadeEngine {
  Engine* engine = nullptr;
  wire::DataFacts facts;
  uint64_t largest_slot = 0;             // measured if train.global_batch is auto; else 0
  DeviceComm* devices = nullptr;         // null: gradients are summed in the host's memory
  std::optional<wire::GpuIdentity> gpu;  // none: the CPU, or a GPU that cannot be told from others
  std::vector<wire::IdentityFact> identity;  // of a script: facts that may not change, by key
  std::string state_hash;                    // these two of a script: Register
  std::string code_hash;
};

class EngineMaker {
 public:
  virtual ~EngineMaker() = default;

  // Opens the data and builds the engine. Call once. Errors go to the coordinator, and end the
  // worker.
  virtual Result<MadeEngine> build(const EngineMakerHost& host) = 0;

  // The run is complete for this worker, which has not merely left it. Called on the training
  // thread, before the coordinator hears of it.
  virtual void has_finished() {}

  // The worker has trained. An implementation releases resources that may block here, and not in
  // the destructor: the process waits only so long for this thread (last_wait.h). `devices` is no
  // longer used.
  virtual void has_trained() {}
};

}  // namespace lockstep
